"""What is worked out before a model is asked: L2 stewardship, recall, the prompt of L3; or an answer without one."""

import zoneinfo
from dataclasses import dataclass

from django.conf import settings
from django.utils import timezone

from conversations import imprint, intents, llm, services, stewardship, window
from conversations.models import Imprint, Mode, Profile, Turn
from conversations.tools import Toolbox

# The built-in responder reads the prompt as a program does: it has no context to fill.
BUILT_IN_TOKENS = 1_000_000
BUILT_IN_TURNS = 1000


@dataclass(frozen=True, slots=True)
class Plan:
    """A fixed answer, or what the model is given."""

    fixed: str
    draft: imprint.Draft | None
    toolbox: Toolbox | None
    guidance: str = ""


def plan(turn: Turn) -> Plan:
    """What the turn is answered with. After a soft bell it is always a model's answer, under the directive: what
    would have been a fixed one becomes the operator's guidance, or a note beside what memory holds.
    """
    now = timezone.now()
    profile = services.profile_of(turn.owner)
    tz = zoneinfo.ZoneInfo(profile.time_zone)
    redirect_to = _stewardship(turn, profile)
    soft_bell = turn.action == Turn.Action.SOFT_BELL
    if redirect_to is not None and not soft_bell:
        return Plan(redirect_to, None, None)
    guidance = redirect_to or ""
    with_tools = turn.mode == Mode.AGENTIC and llm.describe().configured
    intent = intents.recognise(turn.q, now=now, tz=tz)
    if with_tools and intent.kind not in (intents.Kind.NONE, intents.Kind.REMEMBER):
        # The model has tools for look-ups; it gets what lies nearest all the same.
        intent = intents.Intent(intents.Kind.NONE, intent.window)
    material = _gather(turn, intent, tz)
    if material.fixed is not None and not soft_bell:
        return Plan(material.fixed, None, None)
    toolbox = (
        Toolbox(owner=turn.owner, session=turn.session, before=turn.turn_index, tz=tz) if with_tools else None
    )
    draft = _draft(turn, profile, material, guidance=guidance, with_tools=with_tools)
    return Plan("", draft, toolbox, guidance)


def look_up(turn: Turn, plan: Plan) -> imprint.Draft:
    """The draft of a second asking, without tools: recent talk and what matches the message stand in the prompt."""
    profile = services.profile_of(turn.owner)
    tz = zoneinfo.ZoneInfo(profile.time_zone)
    intent = intents.recognise(turn.q, now=timezone.now(), tz=tz)
    material = _gather(turn, intent, tz)
    return _draft(turn, profile, material, guidance=plan.guidance, with_tools=False)


def _gather(turn: Turn, intent: intents.Intent, tz: zoneinfo.ZoneInfo) -> window.Material:
    return window.gather(
        owner=turn.owner,
        session=turn.session,
        before=turn.turn_index,
        message=turn.q,
        intent=intent,
        tz=tz,
        most_recent=window.MOST_RECENT_TURNS if llm.describe().configured else BUILT_IN_TURNS,
    )


def _draft(
    turn: Turn, profile: Profile, material: window.Material, *, guidance: str, with_tools: bool
) -> imprint.Draft:
    head = material.head | ({"note": material.fixed} if material.fixed else {})
    tz = zoneinfo.ZoneInfo(profile.time_zone)
    earlier = (
        Turn.objects.in_thread(turn.session)
        .filter(turn_index__lt=turn.turn_index)
        .order_by("-turn_index")
        .values_list("q", "a")[: window.RECENT_TURNS]
    )
    return imprint.prepare(
        imprint=turn.session.imprint or profile.imprint or Imprint.objects.filter(is_default=True).first(),
        soft_bell=turn.action == Turn.Action.SOFT_BELL,
        message=turn.q,
        history=[(q, a) for q, a in reversed(earlier) if a],
        passages=material.passages,
        kept=window.pinned_facts(owner=turn.owner, tz=tz),
        intent=head,
        guidance=guidance,
        with_tools=with_tools,
        budget=settings.NEURON_PROMPT_TOKENS if llm.describe().configured else BUILT_IN_TOKENS,
        now=timezone.now(),
        tz=tz,
    )


def _stewardship(turn: Turn, profile: Profile) -> str | None:
    """The operator's words in place of an answer, if a policy covers the message; notices owed go onto the turn."""
    now = timezone.now()
    decision = stewardship.decide(
        turn.q,
        use=stewardship.Use(profile.last_active_at, profile.last_notice_at, profile.is_minor),
        now=now,
    )
    notices = [{"id": notice.id, "text": notice.text} for notice in decision.notices]
    services.note_use(profile=profile, turn=turn, notices=notices, now=now)
    return decision.redirect_to
