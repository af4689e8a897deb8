from django.db import migrations

# Vectors of the model before it are made anew by the sweeper; until then their owners search by words alone.
_INDEX = """
DROP INDEX vector_nearest;
CREATE INDEX vector_nearest ON memory_unitvector
    USING hnsw ((embedding::halfvec(384)) halfvec_ip_ops)
    WHERE unit = 0 AND approximate AND model = '{model}';
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0010_derived'),
    ]

    operations = [
        migrations.RunSQL(
            _INDEX.format(model='all-MiniLM-L6-v2-int8-dynamic'),
            _INDEX.format(model='all-MiniLM-L6-v2-onnx-int8'),
        ),
    ]
