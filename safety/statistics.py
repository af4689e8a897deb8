"""How review goes: counts by week, how often stewards found a bell justified, how long they took."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import median

from django.db.models import Count, Min
from django.db.models.functions import TruncWeek
from django.utils import timezone

from safety.models import BellEvent, Referral

WEEKS = 12


@dataclass(frozen=True, slots=True)
class Week:
    """Bells of one week, which begins on this Monday."""

    begins: date
    hard: int
    soft: int
    withheld: int

    @property
    def total(self) -> int:
        return self.hard + self.soft + self.withheld


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits for review."""

    waiting: int
    hard: int
    longest: timedelta | None


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Bells whose review came to a verdict. `precision` is None before the first."""

    justified: int
    false: int

    @property
    def precision(self) -> float | None:
        judged = self.justified + self.false
        return self.justified / judged if judged else None


def queue(now: datetime | None = None) -> Queue:
    """How many wait, how many of them hard, and how long the oldest has."""
    now = now or timezone.now()
    found = BellEvent.objects.unreviewed().aggregate(oldest=Min("created_at"), number=Count("pk"))
    hard = BellEvent.objects.unreviewed().filter(level=BellEvent.Level.HARD).count()
    return Queue(found["number"], hard, now - found["oldest"] if found["oldest"] else None)


def by_week(now: datetime | None = None, weeks: int = WEEKS) -> list[Week]:
    """Counts of the last weeks, the present one last; a quiet week is there with zeros."""
    monday = _monday(timezone.localdate(now))
    first = monday - timedelta(weeks=weeks - 1)
    rows = (
        BellEvent.objects.filter(
            created_at__gte=_midnight(first), created_at__lt=_midnight(monday) + timedelta(weeks=1)
        )
        .order_by()
        .annotate(week=TruncWeek("created_at"))
        .values_list("week", "level")
        .annotate(number=Count("pk"))
    )
    found = {(timezone.localdate(week), level): number for week, level, number in rows}
    return [
        Week(begins, *(found.get((begins, level), 0) for level in ("hard", "soft", "withheld")))
        for begins in (first + timedelta(weeks=number) for number in range(weeks))
    ]


def verdicts() -> Verdicts:
    """Resolved bells were justified, false positives were not; acknowledged ones are not judged yet."""
    counts = dict(BellEvent.objects.order_by().values_list("state").annotate(Count("pk")))
    return Verdicts(counts.get(BellEvent.State.RESOLVED, 0), counts.get(BellEvent.State.FALSE_POSITIVE, 0))


def median_time_to_review() -> timedelta | None:
    """From the bell to the first step of its review, over all that had one; None before the first."""
    taken = BellEvent.objects.annotate(first=Min("reviews__created_at")).exclude(first=None)
    return _median(first - rang for rang, first in taken.values_list("created_at", "first"))


def referrals(now: datetime | None = None) -> int:
    """How often help lines were really shown since the year began."""
    year = timezone.localdate(now).year
    return Referral.objects.filter(shown_at__gte=_midnight(date(year, 1, 1))).count()


def _median(times: Iterable[timedelta]) -> timedelta | None:
    seconds = [time.total_seconds() for time in times]
    return timedelta(seconds=median(seconds)) if seconds else None


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime(day.year, day.month, day.day))  # noqa: DTZ001  (made aware at once)


# --- The picture --------------------------------------------------------------------------------------------------

BAR, GAP, HEIGHT = 28, 12, 120


@dataclass(frozen=True, slots=True)
class Block:
    """A rectangle of the picture, and what it stands for."""

    x: int
    y: float
    width: int
    height: float
    kind: str
    label: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Stacked bars by week, as the template draws them."""

    width: int
    height: int
    blocks: list[Block]
    marks: list[tuple[float, str]]
    most: int


def picture(weeks: list[Week]) -> Picture:
    """Hard at the bottom, then soft, then withheld; as high as the busiest week."""
    most = max((week.total for week in weeks), default=0)
    blocks: list[Block] = []
    for number, week in enumerate(weeks):
        top = float(HEIGHT)
        for kind in ("hard", "soft", "withheld"):
            count = getattr(week, kind)
            if count:
                height = count / most * HEIGHT
                top -= height
                label = f"Week of {week.begins:%-d %B}: {count} {kind}"
                blocks.append(Block(number * (BAR + GAP), round(top, 1), BAR, round(height, 1), kind, label))
    marks = [(number * (BAR + GAP) + BAR / 2, f"{week.begins:%-d %b}") for number, week in enumerate(weeks)]
    return Picture(len(weeks) * (BAR + GAP), HEIGHT, blocks, marks, most)
