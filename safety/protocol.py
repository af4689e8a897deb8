"""What the safety layer does, said from its live configuration: for the public page and the yearly "
"report."""

from dataclasses import dataclass
from datetime import date

from django.utils import timezone

from memory.embedding import EmbedderUnavailable, embed_packaged
from safety import help_lines, second_look
from safety.lexicon import lexicon
from safety.models import SUMMARY_LENGTH
from safety.quality import Quality, recorded
from safety.resources import STALE_AFTER, HelpLine, Resources
from safety.screening import LISTS_VERSION, detector_version, thresholds
from safety.semantic import HARD_KINDS, weights
from safety.services import RISK_HALF_LIFE


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of the screen: whether it is "working", "degraded" or "off" now, and what it does."""

    name: str
    state: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its paragraphs."""

    title: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Country:
    """The help lines of a country with the state of each."""

    resources: Resources
    lines: tuple[tuple[HelpLine, str, bool], ...]  # the line, its state in words, whether it is verified

    @property
    def unverified(self) -> int:
        return sum(not verified for _, _, verified in self.lines)


@dataclass(frozen=True, slots=True)
class Measured:
    """The recorded measurement, and whether it is of the detector that runs."""

    quality: Quality
    current: bool


def meaning_works() -> bool:
    """Whether the classifier can read at this moment."""
    try:
        embed_packaged(["Is anybody there?"])
    except EmbedderUnavailable:
        return False
    return True


def layers() -> list[Layer]:
    """The layers of the screen as they stand now."""
    lists, limits, meaning = lexicon(), thresholds(), weights()
    works, asked = meaning_works(), second_look.who()
    return [
        Layer(
            "Phrase lists",
            "working",
            f"{len(lists.hard.entries)} phrases that speak of danger, {len(lists.soft.entries)} of "
            "distress and "
            f"{len(lists.idioms.entries)} figures of speech, looked for in the text as typed and with "
            "disguised "
            f"spelling undone (version {LISTS_VERSION}).",
        ),
        Layer(
            "Meaning",
            "working" if works else "degraded",
            f"A classifier compares the message with {len(meaning.ids):,} examples written for it, of "
            f"{len(meaning.kinds)} kinds, {len(HARD_KINDS)} of them danger. It rings hard from "
            f"{limits.hard:.2f} of 1 and "
            f"soft from {limits.soft:.2f} (version {meaning.version})."
            if works
            else "The classifier cannot read at the moment, so the phrase lists decide alone. The screen is degraded.",
        ),
        Layer(
            "What came before",
            "working",
            "A message that is unclear by itself is heard with what the person's earlier ones left "
            "behind. That fades "
            f"by half every {RISK_HALF_LIFE.total_seconds() / 3600:.0f} hours, and not with the number "
            "of messages.",
        ),
        Layer(
            "Second look",
            "working" if asked else "off",
            f"A message that the other layers are unsure of is put to the language model {asked}, for "
            "two seconds at the "
            "most. It can raise a message to danger and settle distress against none; it never lowers "
            "danger, and "
            "where it fails the other layers decide."
            if asked
            else "Not in use: no language model is asked about messages that the other layers are unsure of.",
        ),
    ]


def sections() -> list[Section]:
    """The protocol, in words."""
    return [
        Section(
            "When somebody is in danger",
            (
                "Every message is screened on this machine before a language model sees it. Where a "
                "message speaks of "
                "suicide with intent, a plan, means or a goodbye, of a recent attempt or overdose, of "
                "self-harm, or of "
                "harming somebody else, a hard bell rings: no model answers. The person gets a fixed "
                "reply that names the "
                "help lines of their country and the emergency number, and one thing to do now. The "
                "message goes neither "
                "into the conversation nor into memory.",
            ),
        ),
        Section(
            "When somebody is in distress",
            (
                "A soft bell rings. The model answers under a directive that puts the person first. "
                "Where a wish to die was "
                "heard, help lines stand beside the answer.",
            ),
        ),
        Section(
            "What a model may not say",
            (
                "Each sentence of a reply is checked before it is shown, by rules and by the same "
                "detector: no method or "
                "means of harm, no encouragement of it, no threat, nothing that keeps somebody from "
                "help, no claim to be "
                "human. A reply that fails is replaced by a fixed one, and that it happened is logged "
                "without its text.",
            ),
        ),
        Section(
            "When something fails",
            (
                "A message that cannot be screened is not put to a model. A bell that the database does "
                "not take is kept in "
                "a file and written later; the person gets their reply at once. If the classifier fails "
                "the phrase lists "
                "go on, and this page says so.",
            ),
        ),
        Section(
            "Who looks at it",
            (
                "Every bell waits for review by people whom the operator of this Neuron has named. They "
                "see when it rang, "
                f"how serious it is and why, and the first {SUMMARY_LENGTH} characters of the message. "
                "What they decide, and "
                "who of them looked, is kept for good.",
            ),
        ),
        Section(
            "What this cannot do",
            (
                "It reads English. It misses some danger and rings for some harmless talk; the measured "
                "figures say how "
                "often. It is no substitute for people, and no emergency service.",
            ),
        ),
    ]


def measured() -> Measured:
    """The figures that stand in the release or that the operator recorded."""
    quality = recorded()
    return Measured(quality, quality.detector_version == detector_version())


def countries(here: str = "", today: date | None = None) -> list[Country]:
    """All countries by name, but the one of whoever looks first; each line with the state of its verification."""
    today = today or timezone.localdate()
    known = [one for one in help_lines.all_resources().values() if one.country]
    return [
        Country(one, tuple((line, _state(line, today), line.is_verified(today)) for line in one.lines))
        for one in sorted(known, key=lambda one: (one.country != here, one.country_name))
    ]


def _state(line: HelpLine, today: date) -> str:
    if line.verified_on is None:
        return "not verified with the provider"
    day = f"{line.verified_on:%-d %B %Y}"
    if line.is_verified(today):
        return f"verified on {day}"
    return f"last verified on {day}, more than {STALE_AFTER.days} days ago"
