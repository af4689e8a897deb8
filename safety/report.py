"""The counts of one year, for the report the law asks of companions: how often, and nothing of whom."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, QuerySet
from django.utils import timezone

from safety import explain
from safety.models import BellEvent, BellReview, Referral


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of a year, in the operator's time zone. `ideation` is by C-SSRS level, in words."""

    year: int
    referrals_in_place: int
    referrals_beside: int
    hard_bells: int
    soft_bells: int
    withheld_replies: int
    ideation: dict[str, int]
    reviewed: int
    resolved: int
    false_positives: int

    @property
    def referrals(self) -> int:
        return self.referrals_in_place + self.referrals_beside


def counts(year: int) -> Counts:
    """Whole numbers over the whole year; no person, day, country or message can be told from them."""
    begin, end = _new_year(year), _new_year(year + 1)
    bells = BellEvent.objects.filter(created_at__gte=begin, created_at__lt=end)
    shown = Referral.objects.filter(shown_at__gte=begin, shown_at__lt=end)
    levels, states = _by(bells, "level"), _by(bells, "state")
    referrals, ideation = _by(shown, "level"), _by(bells, "ideation_level")
    return Counts(
        year=year,
        referrals_in_place=referrals.get("hard", 0),
        referrals_beside=referrals.get("soft", 0),
        hard_bells=levels.get("hard", 0),
        soft_bells=levels.get("soft", 0),
        withheld_replies=levels.get("withheld", 0),
        ideation={words: ideation.get(level, 0) for level, words in explain.IDEATION.items()},
        reviewed=BellReview.objects.filter(bell__in=bells).values("bell").distinct().count(),
        resolved=states.get("resolved", 0),
        false_positives=states.get("false_positive", 0),
    )


def _by(rows: "QuerySet[BellEvent] | QuerySet[Referral]", field: str) -> dict[object, int]:
    return dict(rows.order_by().values_list(field).annotate(Count("pk")))


def _new_year(year: int) -> datetime:
    return timezone.make_aware(datetime(year, 1, 1))  # noqa: DTZ001  (made aware at once)
