"""The inverted index: where each word of an owner stands. What was indexed before is read anew by the sweeper."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

FORGET_DERIVED = """
TRUNCATE memory_utterance, memory_unitvector, memory_ownerterm, memory_ownerindex;
UPDATE memory_memorynode SET indexed_version = 0;
"""
# Counts and postings change where the rows change, so no path of deletion can leave a word behind.
# The owner's row in memory_ownerindex is taken first: it keeps two writers of one owner apart.
COUNTING = """
CREATE OR REPLACE FUNCTION memory_count_added() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO memory_ownerindex AS total (owner_id, chunks, utterances, approximate)
        SELECT owner_id, sum(chunks), count(*), false FROM added GROUP BY owner_id ORDER BY owner_id
        ON CONFLICT (owner_id) DO UPDATE
            SET chunks = total.chunks + excluded.chunks, utterances = total.utterances + excluded.utterances;
    INSERT INTO memory_ownerterm AS term (owner_id, key, word, chunks)
        SELECT owner_id, key, '', count(*) FROM added, unnest(terms) AS key
        WHERE key <> 0 GROUP BY owner_id, key ORDER BY owner_id, key
        ON CONFLICT (owner_id, key) DO UPDATE SET chunks = term.chunks + excluded.chunks;
    INSERT INTO memory_posting AS posting (owner_id, key, block, utterances, threads)
        SELECT owner_id, key, block, array_agg(id ORDER BY id), array_agg(thread ORDER BY id)
        FROM (
            SELECT DISTINCT owner_id, key, block, id,
                coalesce(('x' || left(session_id::text, 8))::bit(32)::int, 0) AS thread
            FROM added, unnest(terms) AS key WHERE key <> 0
        ) AS standing
        GROUP BY owner_id, key, block ORDER BY owner_id, key, block
        ON CONFLICT (owner_id, key, block) DO UPDATE
            SET utterances = posting.utterances || excluded.utterances,
                threads = posting.threads || excluded.threads;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION memory_count_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memory_ownerindex AS total SET chunks = greatest(total.chunks - gone.chunks, 0)
        FROM (SELECT owner_id, sum(chunks) AS chunks FROM removed GROUP BY owner_id) AS gone
        WHERE total.owner_id = gone.owner_id;
    WITH gone AS (
        SELECT owner_id, key, count(*) AS chunks FROM removed, unnest(terms) AS key
        WHERE key <> 0 GROUP BY owner_id, key
    ), emptied AS (
        DELETE FROM memory_ownerterm AS term USING gone
        WHERE term.owner_id = gone.owner_id AND term.key = gone.key AND term.chunks <= gone.chunks
    )
    UPDATE memory_ownerterm AS term SET chunks = term.chunks - gone.chunks FROM gone
        WHERE term.owner_id = gone.owner_id AND term.key = gone.key AND term.chunks > gone.chunks;
    WITH gone AS (
        SELECT owner_id, key, block, array_agg(id) AS ids FROM removed, unnest(terms) AS key
        WHERE key <> 0 GROUP BY owner_id, key, block
    ), emptied AS (
        DELETE FROM memory_posting AS posting USING gone
        WHERE posting.owner_id = gone.owner_id AND posting.key = gone.key AND posting.block = gone.block
            AND posting.utterances <@ gone.ids
    )
    UPDATE memory_posting AS posting
        SET (utterances, threads) = (
            SELECT array_agg(utterance ORDER BY place), array_agg(thread ORDER BY place)
            FROM unnest(posting.utterances, posting.threads) WITH ORDINALITY AS kept (utterance, thread, place)
            WHERE utterance <> ALL (gone.ids)
        )
        FROM gone
        WHERE posting.owner_id = gone.owner_id AND posting.key = gone.key AND posting.block = gone.block
            AND NOT posting.utterances <@ gone.ids;
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("memory", "0006_engram_sync"),
    ]

    operations = [
        migrations.RunSQL(FORGET_DERIVED, migrations.RunSQL.noop),
        migrations.RemoveIndex(model_name="utterance", name="utterance_terms"),
        migrations.AddField(
            model_name="ownerindex",
            name="utterances",
            field=models.PositiveBigIntegerField(
                default=0, help_text="Ever indexed; places the next in its block."
            ),
        ),
        migrations.AddField(
            model_name="utterance",
            name="block",
            field=models.PositiveIntegerField(default=0, help_text="Which rows of Posting name it."),
            preserve_default=False,
        ),
        migrations.CreateModel(
            name="Posting",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "owner_id", "key", "block", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("key", models.BigIntegerField()),
                ("block", models.PositiveIntegerField()),
                (
                    "utterances",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                (
                    "threads",
                    django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None),
                ),
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
        migrations.RunSQL(COUNTING, migrations.RunSQL.noop),
    ]
