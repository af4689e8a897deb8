"""The imprint that answers until the operator makes another the default."""

from pathlib import Path

from django.db import migrations

TEXT = Path(__file__).resolve().parent.parent / "prompts" / "default_imprint.txt"


def make_default_imprint(apps, schema_editor):
    apps.get_model("conversations", "Imprint").objects.create(
        name="Neuron",
        voice="warm, plain, unhurried",
        system_prompt=TEXT.read_text(encoding="utf-8").strip(),
        is_default=True,
    )


class Migration(migrations.Migration):
    dependencies = [("conversations", "0001_initial")]

    operations = [migrations.RunPython(make_default_imprint, migrations.RunPython.noop)]
