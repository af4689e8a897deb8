"""What recall reads whole is packed into bytes: the terms of an utterance, its postings, and the signs of its vectors.

The signs stood beside each vector, in an index of their own; 20,000 of them took 6 ms to compare there. They stand in
blocks now, like the postings, and are compared outside of the database in 1 ms, half of which it takes to fetch them.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

PACKING = """
CREATE FUNCTION memory_entries(packed bytea, width int) RETURNS TABLE (place int, entry bytea)
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT place, substr(packed, place * width + 1, width)
    FROM generate_series(0, length(packed) / width - 1) AS place
$$;
CREATE FUNCTION memory_number(packed bytea) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('x' || encode(packed, 'hex'))::bit(64)::bigint
$$;
CREATE FUNCTION memory_terms(terms bytea) RETURNS SETOF bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT entry FROM memory_entries(terms, 8) WHERE entry <> int8send(0)
$$;
CREATE FUNCTION memory_signs(utterance_id bigint, embedding halfvec) RETURNS bytea
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT int8send(utterance_id) || substr(varbit_send(binary_quantize(embedding)), 5)
$$;
"""
NO_PACKING = """
DROP FUNCTION memory_signs(bigint, halfvec);
DROP FUNCTION memory_terms(bytea);
DROP FUNCTION memory_number(bytea);
DROP FUNCTION memory_entries(bytea, int);
"""
# Random bits do not compress: kept as they are, out of line, a block is read without being unpacked.
TERMS = """
CREATE FUNCTION pg_temp.packed(terms bigint[]) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(string_agg(int8send(key), '' ORDER BY place), '')
    FROM unnest(terms) WITH ORDINALITY AS term (key, place)
$$;
ALTER TABLE memory_utterance ALTER COLUMN terms TYPE bytea USING pg_temp.packed(terms);
ALTER TABLE memory_utterance ALTER COLUMN terms SET STORAGE EXTERNAL;
"""
POSTINGS = """
ALTER TABLE memory_posting ALTER COLUMN entries SET STORAGE EXTERNAL;
INSERT INTO memory_posting (owner_id, key, block, entries)
    SELECT owner_id, memory_number(term), block, string_agg(int8send(id) || thread, '' ORDER BY id)
    FROM (
        SELECT DISTINCT owner_id, term, block, id, coalesce(substr(uuid_send(session_id), 1, 4), int4send(0)) AS thread
        FROM memory_utterance, memory_terms(terms) AS term
    ) AS standing
    GROUP BY owner_id, term, block;
"""
SIGNS = """
ALTER TABLE memory_signblock ALTER COLUMN entries SET STORAGE EXTERNAL;
INSERT INTO memory_signblock (owner_id, model, block, entries)
    SELECT owner_id, model, block, string_agg(memory_signs(utterance_id, embedding), '' ORDER BY utterance_id)
    FROM (
        SELECT *, (row_number() OVER (PARTITION BY owner_id, model ORDER BY utterance_id) - 1) / 1024 AS block
        FROM memory_unitvector WHERE unit = 0
    ) AS whole
    GROUP BY owner_id, model, block;
DROP INDEX vector_bits;
ALTER TABLE memory_unitvector DROP COLUMN bits;
"""
# Counts, postings and signs change where the rows change, so no path of deletion can leave anything behind.
# The owner's row in memory_ownerindex is taken first: it keeps two writers of one owner apart. A block is read out of
# line once (|| ''), rather than once for each of its entries, and left behind (MATERIALIZED), rather than taken along
# by each of them into the sort.
COUNTING = """
CREATE OR REPLACE FUNCTION memory_count_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memory_ownerindex AS total (owner_id, chunks, utterances, approximate)
        SELECT owner_id, sum(chunks), count(*), false FROM added GROUP BY owner_id ORDER BY owner_id
        ON CONFLICT (owner_id) DO UPDATE
            SET chunks = total.chunks + excluded.chunks, utterances = total.utterances + excluded.utterances;
    INSERT INTO memory_ownerterm AS term (owner_id, key, word, chunks)
        SELECT owner_id, memory_number(entry) AS key, '', count(*) FROM added, memory_terms(terms) AS entry
        GROUP BY owner_id, entry ORDER BY owner_id, key
        ON CONFLICT (owner_id, key) DO UPDATE SET chunks = term.chunks + excluded.chunks;
    INSERT INTO memory_posting AS posting (owner_id, key, block, entries)
        SELECT owner_id, memory_number(term) AS key, block, string_agg(int8send(id) || thread, '' ORDER BY id)
        FROM (
            SELECT DISTINCT owner_id, term, block, id,
                coalesce(substr(uuid_send(session_id), 1, 4), int4send(0)) AS thread
            FROM added, memory_terms(terms) AS term
        ) AS standing
        GROUP BY owner_id, term, block ORDER BY owner_id, key, block
        ON CONFLICT (owner_id, key, block) DO UPDATE SET entries = posting.entries || excluded.entries;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION memory_count_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memory_ownerindex AS total SET chunks = greatest(total.chunks - gone.chunks, 0)
        FROM (SELECT owner_id, sum(chunks) AS chunks FROM removed GROUP BY owner_id) AS gone
        WHERE total.owner_id = gone.owner_id;
    WITH gone AS (
        SELECT owner_id, memory_number(entry) AS key, count(*) AS chunks FROM removed, memory_terms(terms) AS entry
        GROUP BY owner_id, entry
    ), emptied AS (
        DELETE FROM memory_ownerterm AS term USING gone
        WHERE term.owner_id = gone.owner_id AND term.key = gone.key AND term.chunks <= gone.chunks
    )
    UPDATE memory_ownerterm AS term SET chunks = term.chunks - gone.chunks FROM gone
        WHERE term.owner_id = gone.owner_id AND term.key = gone.key AND term.chunks > gone.chunks;
    WITH gone AS MATERIALIZED (
        SELECT DISTINCT owner_id, memory_number(term) AS key, block, int8send(id) AS id
        FROM removed, memory_terms(terms) AS term
    ), touched AS MATERIALIZED (
        SELECT posting.owner_id, posting.key, posting.block, posting.entries || ''::bytea AS entries
        FROM (SELECT DISTINCT owner_id, key, block FROM gone) AS hit
        JOIN memory_posting AS posting USING (owner_id, key, block)
    ), standing AS MATERIALIZED (
        SELECT owner_id, key, block, place, entry, substr(entry, 1, 8) AS id
        FROM touched CROSS JOIN memory_entries(entries, 12)
    ), kept AS MATERIALIZED (
        SELECT owner_id, key, block, string_agg(entry, '' ORDER BY place) FILTER (WHERE gone.id IS NULL) AS entries
        FROM standing LEFT JOIN gone USING (owner_id, key, block, id)
        GROUP BY owner_id, key, block
    ), emptied AS (
        DELETE FROM memory_posting AS posting USING kept
        WHERE posting.owner_id = kept.owner_id AND posting.key = kept.key AND posting.block = kept.block
            AND kept.entries IS NULL
    )
    UPDATE memory_posting AS posting SET entries = kept.entries FROM kept
        WHERE posting.owner_id = kept.owner_id AND posting.key = kept.key AND posting.block = kept.block
            AND kept.entries IS NOT NULL;
    RETURN NULL;
END $$;

CREATE FUNCTION memory_signs_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM memory_ownerindex WHERE owner_id IN (SELECT owner_id FROM added) ORDER BY owner_id FOR UPDATE;
    INSERT INTO memory_signblock AS signs (owner_id, model, block, entries)
        SELECT owner_id, model, block, string_agg(entry, '' ORDER BY utterance_id) FROM (
            SELECT fresh.owner_id, fresh.model, utterance_id, entry, coalesce(newest.block, 0)
                + (coalesce(length(newest.entries) / length(entry), 0) + number - 1) / 1024 AS block
            FROM (
                SELECT owner_id, model, utterance_id, memory_signs(utterance_id, embedding) AS entry,
                    row_number() OVER (PARTITION BY owner_id, model ORDER BY utterance_id) AS number
                FROM added WHERE unit = 0
            ) AS fresh
            LEFT JOIN LATERAL (
                SELECT block, entries FROM memory_signblock AS standing
                WHERE standing.owner_id = fresh.owner_id AND standing.model = fresh.model
                ORDER BY block DESC LIMIT 1
            ) AS newest ON true
        ) AS placed
        GROUP BY owner_id, model, block ORDER BY owner_id, model, block
        ON CONFLICT (owner_id, model, block) DO UPDATE SET entries = signs.entries || excluded.entries;
    RETURN NULL;
END $$;

CREATE FUNCTION memory_signs_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM memory_ownerindex WHERE owner_id IN (SELECT owner_id FROM removed) ORDER BY owner_id FOR UPDATE;
    WITH gone AS MATERIALIZED (
        SELECT owner_id, model, int8send(utterance_id) AS id, length(memory_signs(utterance_id, embedding)) AS width
        FROM removed WHERE unit = 0
    ), touched AS MATERIALIZED (
        SELECT signs.owner_id, signs.model, signs.block, hit.width, signs.entries || ''::bytea AS entries
        FROM (SELECT DISTINCT owner_id, model, width FROM gone) AS hit
        JOIN memory_signblock AS signs USING (owner_id, model)
    ), standing AS MATERIALIZED (
        SELECT owner_id, model, block, place, entry, substr(entry, 1, 8) AS id
        FROM touched CROSS JOIN memory_entries(entries, width)
    ), kept AS MATERIALIZED (
        SELECT owner_id, model, block, string_agg(entry, '' ORDER BY place) FILTER (WHERE gone.id IS NULL) AS entries
        FROM standing LEFT JOIN gone USING (owner_id, model, id)
        GROUP BY owner_id, model, block HAVING count(gone.id) > 0
    ), emptied AS (
        DELETE FROM memory_signblock AS signs USING kept
        WHERE signs.owner_id = kept.owner_id AND signs.model = kept.model AND signs.block = kept.block
            AND kept.entries IS NULL
    )
    UPDATE memory_signblock AS signs SET entries = kept.entries FROM kept
        WHERE signs.owner_id = kept.owner_id AND signs.model = kept.model AND signs.block = kept.block
            AND kept.entries IS NOT NULL;
    RETURN NULL;
END $$;

CREATE TRIGGER signs_added AFTER INSERT ON memory_unitvector
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION memory_signs_added();
CREATE TRIGGER signs_removed AFTER DELETE ON memory_unitvector
    REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION memory_signs_removed();
"""


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("memory", "0011_vectors_of_the_int8_model"),
    ]

    operations = [
        migrations.RunSQL(PACKING, NO_PACKING),
        migrations.RunSQL(
            TERMS,
            state_operations=[
                migrations.AlterField(
                    model_name="utterance", name="terms", field=models.BinaryField(editable=False)
                )
            ],
        ),
        migrations.RunSQL("TRUNCATE memory_posting"),
        migrations.RemoveField(model_name="posting", name="utterances"),
        migrations.RemoveField(model_name="posting", name="threads"),
        migrations.AddField(
            model_name="posting", name="entries", field=models.BinaryField(default=b""), preserve_default=False
        ),
        migrations.RunSQL(POSTINGS),
        migrations.CreateModel(
            name="SignBlock",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "owner_id", "model", "block", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("model", models.CharField(max_length=120)),
                ("block", models.PositiveIntegerField()),
                ("entries", models.BinaryField()),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.RunSQL(SIGNS),
        migrations.RunSQL(COUNTING),
    ]
