"""The signs of each vector beside it, in an index that is read alone: a first look at an owner's messages.

An index-only scan over 20,000 messages reads 300 pages; their vectors lie on 9,000.
"""

from django.db import migrations

SIGNS = """
ALTER TABLE memory_unitvector ADD COLUMN bits bit varying GENERATED ALWAYS AS (binary_quantize(embedding)) STORED;
CREATE INDEX vector_bits ON memory_unitvector (owner_id, model) INCLUDE (utterance_id, bits) WHERE unit = 0;
"""
NO_SIGNS = """
DROP INDEX vector_bits;
ALTER TABLE memory_unitvector DROP COLUMN bits;
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0007_postings")]

    operations = [
        migrations.RemoveIndex(model_name="unitvector", name="vector_of_owner"),
        migrations.RunSQL(SIGNS, NO_SIGNS),
    ]
