"""The group of those who review bells, with the rights to do just that."""

from django.db import migrations

# Reading a person's turns is not among them.
RIGHTS = {"view_bellevent": "Can view bell event", "change_bellevent": "Can change bell event"}


def make_group(apps, schema_editor):
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    ContentType = apps.get_model("contenttypes", "ContentType")
    # Django makes permissions after all migrations, so on a new database they are not there yet.
    kind, _ = ContentType.objects.get_or_create(app_label="safety", model="bellevent")
    group, _ = Group.objects.get_or_create(name="Stewards")
    for codename, name in RIGHTS.items():
        right, _ = Permission.objects.get_or_create(content_type=kind, codename=codename, defaults={"name": name})
        group.permissions.add(right)


def remove_group(apps, schema_editor):
    apps.get_model("auth", "Group").objects.filter(name="Stewards").delete()


class Migration(migrations.Migration):
    dependencies = [
        ("safety", "0002_bell_view"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(make_group, remove_group)]
