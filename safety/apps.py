"""The app's configuration."""

from django.apps import AppConfig


class SafetyConfig(AppConfig):
    name = "safety"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from memory.engram.mirror import read_bells_with
        from safety import checks  # noqa: F401 (registers the checks)
        from safety.mirroring import bell_node

        read_bells_with(bell_node)
