"""The whole protocol: the safety layer's own, and the notices that a companion owes."""

from conversations.stewardship import policies
from safety import protocol
from safety.protocol import Section


def sections() -> list[Section]:
    """What Neuron does for the safety of those who talk to it, in words, from the live configuration."""
    rules = policies()
    hours = f"{rules.repeat_after.total_seconds() / 3600:g}"
    return [
        Section(
            "An AI, and it says so",
            (
                "Neuron is a program, not a person. It says so where an account is made, with the first "
                "turn, and every "
                f"{hours} hours of continued use, then with a reminder to take a break. That is counted "
                "on the server, not "
                "in the browser. A pause of more than "
                f"{rules.pause.total_seconds() / 60:g} minutes ends a stretch of use.",
                "People under 18 are reminded more plainly. Companions of this kind may not be suitable "
                "for some minors.",
            ),
        ),
        *protocol.sections(),
    ]
