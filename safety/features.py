"""Rule features: what a message says about who, what, when and how, as named bits beside its meaning. Pure.

Read from the plain wording (`safety.wording`). A bit alone decides nothing; the classifier weighs them.
"""

import re
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_OWN = r"(?:myself|me|my (?:own )?(?:life|head|mouth|wrists?|throat|veins?|neck|heart|brains?|chest|stomach|skull))"
_DIE = (
    r"(?:(?:kill|killing|hang|hanging|shoot|shooting|drown|drowning|stab|stabbing|poison|poisoning|gas|starve|suffocate) myself"
    r"|(?:end|ending|take|taking|ended) (?:it all|my (?:own )?life|myself|everything|this life)|(?:end|ending) it(?! with)"
    r"|(?:commit|committing|attempt|attempting) suicide|jump(?:ing)? (?:off|from|in front|under)|step(?:ping)? in front|slit(?:ting)? my"
    r"|overdos(?:e|ing)|blow(?:ing)? my brains|bleed to death|be dead|die(?! (?:of laugh|for|hard)))"
)
_THEM = (
    r"(?:him|her|them|you all|you|everyone|everybody|people|those|these|that (?:guy|man|woman|bitch|bastard)|all (?:of )?(?:them|you|the|those)|every (?:single )?\w+"
    r"|my (?:\w+ )?(?:wife|husband|boss|ex|boyfriend|girlfriend|mother|father|mom|dad|brother|sister|roommate|neighbou?rs?|teacher|coworkers?|colleagues?|manager|stepdad|parents|family|kids|landlord|professor|classmates?|bull(?:y|ies))"
    r"|the (?:\w+ )?(?:people|guy|man|woman|kids?|teachers?|students?|cops?|police|judge|president|mayor|neighbou?rs?|whole \w+)|(?:immigrants|muslims|jews|women|men|gays|blacks|whites|christians|foreigners|refugees))"
)
_HURT = r"(?:kill|murder|shoot|stab|strangle|choke|beat|hurt|bomb|poison|slaughter|execute|burn|behead|hang|torture|attack|destroy|gas|smash|punch|slit|run over|hunt down|blow up|shoot up|end)"
_MEANS = (
    r"(?:pills?|tablets?|rope|noose|gun|pistol|rifle|shotgun|bullets?|bridge|knife|knives|razors?|blades?|train|tracks|rooftop|roof|ledge|cliff|belt|bleach|antifreeze|helium"
    r"|charcoal|carbon monoxide|exhaust|tylenol|paracetamol|acetaminophen|ibuprofen|aspirin|insulin|xanax|fentanyl|heroin|sleeping|antidepressants|medication|bottle|balcony|traffic|overpass|pesticide|nitrite|cyanide)"
)

_BITS: dict[str, str] = {
    "self": r"\b(?:i|me|my|myself)\b",
    "self many": r"\b(?:i|me|my)\b.*\b(?:i|me|my|myself)\b.*\b(?:i|me|my|myself)\b",
    "myself": r"\bmyself\b",
    "other": r"\b(?:he|she|they|him|her|them|his|their)\b",
    "you": r"\b(?:you|your|yourself)\b",
    "close person": r"\bmy (?:best |close |little |older |younger |big )?(?:friend|brother|sister|mom|dad|son|daughter|wife|husband|boyfriend|girlfriend|partner|roommate|cousin|uncle|aunt|grand\w+|nephew|niece|student|coworker|colleague|neighbou?r)\b",
    "other at risk": r"\b(?:he|she|they|friend|brother|sister|mom|dad|son|daughter|wife|husband|boyfriend|girlfriend|partner|roommate|cousin|student)\b.{0,40}\b(?:wants? to (?:die|kill|end|hurt)|kill (?:him|her|them)sel|killing (?:him|her|them)sel|suicid\w*|cutting|cuts|self harm\w*|tried to kill|overdos\w*|giving away)",
    "wish to die": r"\b(?:want|wants|wanting|wish|wishing|ready|rather|need|hope|hoping|love|like|deserve|prefer|beg\w*|pray\w*|crav\w*)\b(?: \w+){0,4} "
    + _DIE,
    "wish i were dead": r"\bi (?:really |just |honestly |so )?(?:wish|hope|pray)(?: \w+){0,3} (?:dead|die|never been born|not exist|not here|never existed|gone|not wake|disappear|vanish)",
    "die verb": r"\b" + _DIE,
    "suicide word": r"\bsuicid\w*",
    "thinking of it": r"\b(?:think|thinking|thought|thoughts|consider\w*|contemplat\w*|fantasi\w*|imagin\w*|picture|picturing|dream\w*|urges?|idea)\b(?: \w+){0,4} (?:"
    + _DIE
    + r"|suicid\w*|killing|dying|death|ending|hurting|cutting)",
    "going to": r"\b(?:i am |i was )?(?:going to|will|about to|ready to|plan(?:ning|ned)? (?:to|on)|decided|intend|want to|have to|need to|tempted to|might)\b(?: \w+){0,3} "
    + _DIE,
    "plan": r"\b(?:i have (?:a|the|my) plan|(?:my|the|a) plan (?:is|was|to)|planned|planning|(?:set|picked|chosen|chose) (?:a|the|my) (?:date|day|place|spot|method|time)|made (?:a|my|up my) (?:plan|decision|mind)|decided)\b",
    "i will": r"\bi (?:am going to|will|am about to|am ready to|plan to|intend to|am planning|have decided|decided)\b",
    "means": r"\b" + _MEANS + r"\b",
    "means at oneself": r"\b"
    + _MEANS
    + r"\b.{0,50}\b(?:"
    + _OWN
    + r"|die|end it|ready|waiting|next to me|in (?:my|front)|finally|enough)\b",
    "own means": r"\b(?:i|my|have|got|bought|found|saved|saving|saved up|hid|hidden|stash\w*|hoard\w*|stockpil\w*|loaded|holding|keep|kept|own|counted|counting)\b(?: \w+){0,4} "
    + _MEANS
    + r"\b",
    "took": r"\b(?:took|taken|swallowed|downed|ate|popped|injected|drank|just took|have taken)\b(?: \w+){0,6} (?:pills?|tablets?|bottle|pack|packet|box|everything|all of (?:it|them)|handful|bunch|medication|antidepressants|tylenol|paracetamol|ibuprofen|xanax|bleach|too many|too much|whole|entire|\d+)",
    "goodbye": r"\b(?:goodbye|good bye|farewell|bye forever|last message|last post|final (?:message|post|words|letter|note)|so long)\b",
    "note": r"\b(?:suicide note|(?:wrote|writing|written|write|left|leaving|leave)(?: \w+){0,4} (?:notes?|letters?|will)|letters? (?:to|for) (?:my|each|everyone|the))\b",
    "when gone": r"\b(?:(?:when|once|after|if) i (?:am|have) (?:gone|dead|not here|no longer)|when you (?:read|see|find|get) this|by the time|(?:i will be|will be) gone|will not be (?:here|around|alive|there)|without me)\b",
    "last": r"\b(?:(?:one|my|the) last (?:time|day|night|thing|message|conversation|chat|meal|one|week)|forever|for good|never (?:see|hear|be|come|wake)|not see (?:me|you)|hear from me)\b",
    "forgive": r"\b(?:forgive me|i am (?:so |really )?sorry (?:mom|dad|everyone|for everything|to)|tell (?:my|them|him|her|everyone)(?: \w+){0,4} (?:love|sorry)|take care of|look after|i love you all|thank you for everything|remember me)\b",
    "come home": r"\b(?:(?:come|coming|go|going) home to|be with you (?:forever|soon|in)|join (?:you|her|him|them)|see (?:her|him|them|you) (?:again|soon|in heaven|on the other)|other side|next life|leave this (?:world|body|earth|life|place)|leaving this (?:world|life|earth)|heaven|afterlife)\b",
    "attempt": r"\b(?:tried|attempt\w*|survived|failed)\b(?: \w+){0,5} (?:kill|hang|end|overdos\w*|die|suicide|drown|jump|cut|take)",
    "recent": r"\b(?:last night|yesterday|this morning|just (?:took|cut|tried|did|now|swallowed)|(?:an?|few|two|three|some) (?:hours?|days?|minutes?) ago|earlier today|last week|this week|hours ago)\b",
    "now": r"\b(?:tonight|today|right now|now|tomorrow|this (?:weekend|evening|week)|soon|in (?:an|a few|one|two|\d+) (?:hours?|minutes?|days?)|by morning|at midnight|before (?:christmas|my birthday|the end)|on (?:friday|saturday|sunday|monday|my birthday)|finally|ready|it is time)\b",
    "self harm": r"\b(?:cut|cuts|cutting|slice|slicing|scratch\w*|burn|burning|hurt|hurting|punch\w*|hit|hitting|bruis\w*|carv\w*|harm\w*|bang\w*) (?:up )?(?:myself|my (?:own )?(?:arms?|thighs?|legs?|wrists?|skin|head|hips?|stomach|body))|\bself (?:harm|injur)\w*|\b(?:cutting|cut) again\b|\brelaps\w*|\burges?\b|\bscars\b|\bblades?\b|\brazor\w*",
    "hurt another": r"\b" + _HURT + r"(?:ing)? (?:the (?:shit|hell|life) out of )?" + _THEM + r"\b",
    "will hurt another": r"\b(?:i|we)\b(?: \w+){0,3} (?:going to|will|want to|would|should|plan\w*|need to|have to|ready to|about to|swear|dream|love to|like to|could|thinking of)\b(?: \w+){0,3} "
    + _HURT
    + r"(?:ing)? (?:the (?:shit|hell|life) out of )?"
    + _THEM
    + r"\b",
    "should be hurt": r"\b(?:deserves? to (?:die|be|get)|(?:should|need to|must|ought to|have to|has to) (?:all )?(?:be (?:killed|shot|hanged|hung|executed|exterminated|eliminated|burned|gassed|beaten|wiped|put down|stabbed)|die|burn|pay|suffer)|wipe (?:them|out)|make (?:him|her|them|you|everyone) (?:pay|suffer|bleed)|better watch|will regret|going to pay)\b",
    "weapon at place": r"\b(?:gun|knife|bomb|shoot|rifle|weapon)\b.{0,40}\b(?:school|work|office|church|mosque|mall|crowd|class|party|house)\b|\b(?:school|work|office|church|mosque|mall)\b.{0,40}\b(?:gun|bomb|shoot|rifle)\b",
    "how to": r"\b(?:how (?:to|do|can|many|much|long|high|could|would|should)|what is the|best way|easiest|quickest|fastest|painless\w*|least painful|ways? to|methods?|is it (?:possible|painful)|does it hurt|would it|which|where can)\b",
    "how to die": r"\b(?:how (?:to|do|can|many|much|long|high|could|would)|ways? to|best|easiest|quickest|fastest|painless\w*|least painful|methods?|does it hurt|is it painful)\b.{0,50}\b(?:die|dying|kill myself|kill me|kill a person|fatal|lethal|suicide|overdose|death|end (?:it|my)|hang|bleed|myself)\b",
    "doses": r"\b(?:lethal|fatal|deadly|dose|dosage|mg|milligrams?|overdose|toxic)\b",
    "past": r"\b(?:used to|years? ago|back then|when i was|last year|months ago|was (?:suicidal|depressed|in a)|in recovery|recover\w*|clean for|survived|years (?:clean|sober|free|later)|no longer|not any more|in the past|since then|grateful|glad i|anniversary|as a (?:teen\w*|kid|child)|in (?:high school|college|19\d\d|20\d\d))\b",
    "not": r"\b(?:not|never|no|without|nor)\b",
    "not want to die": r"\bnot (?:want|going|wanting|planning|trying|suicidal|thinking|actually)\b(?: \w+){0,4} (?:"
    + _DIE
    + r"|suicidal|harm)|\bnot suicidal\b|\bnever (?:hurt|kill|do) ",
    "fiction": r"\b(?:characters?|novel|story|stories|book|movie|film|episodes?|series|play|scenes?|script|plot|protagonist|villain|chapter|fanfic\w*|dnd|campaign|roleplay|author|writing a|write a|poem|fiction|anime|manga|hero)\b",
    "lyrics": r"\b(?:songs?|lyrics?|album|verse|chorus|sings?|singer|band|quotes?|quoted|playlist|track|rapper)\b",
    "academic": r"\b(?:stud(?:y|ies)|research\w*|statistics?|papers?|essay|prevention|history|theory|course|journal|articles?|documentary|according|rates?|class on|lecture|thesis|report\w*|news|survey|awareness|training|explain|define|meaning|philosoph\w*|policy|law|century|war)\b",
    "technical": r"\b(?:process(?:es)?|server|linux|python|scripts?|docker|threads?|commands?|files?|bash|code|bugs?|errors?|directory|folder|jobs?|daemon|ports?|quer(?:y|ies)|terminal|windows|container|database|app|sql|java\w*|kubernetes|pid|tabs?|program|software|signal|git|api|executable|pods?|cron|execute)\b",
    "gaming": r"\b(?:games?|gaming|level|enem(?:y|ies)|minecraft|fortnite|headshot|players?|boss fight|raid|npc|quest|zelda|skyrim|xp|respawn|multiplayer|chess|kills|zombies?|monsters?|dragon)\b",
    "creatures": r"\b(?:dogs?|cats?|ants?|weeds?|plants?|mosquito\w*|bacteria|rats?|mice|mouse|roach\w*|spiders?|wasps?|bugs|fleas|germs|mold|chickens?|fish|turkey|deer|virus(?:es)?|flies|lice|grass|trees?|insects?|pests?)\b",
    "joke": r"\b(?:lol|lmao|lmfao|haha\w*|rofl|jk|just kidding|hilarious|funny|joke|joking|laugh\w*|omg)\b|[😂🤣💀😅😆😭]",
    "idiom": r"\b(?:killing me|killed it|killing it|dying to (?:know|see|try|hear|meet|get|go|read)|dead (?:tired|serious|line|end|lift)|die hard|killer|bored to (?:death|tears)|deadlines?|kill(?:ing)? (?:time|two birds|some time|the (?:mood|vibe|lights|process|engine|music))|to die for|scared to death|shoot (?:me|you|him|her) (?:an?|the)|over my dead body|dying (?:of|from) (?:laugh\w*|boredom|curiosity|embarrass\w*|hunger|heat|cringe)|starving|drop dead|kill for|could murder a|murder(?:ed)? the|sick of|dressed to kill|phone (?:died|is dead|is dying)|battery|dead battery|love you to death|worked to death|my (?:feet|back|legs|head|knees|boss) (?:is|are) killing)\b",
    "if then": r"\b(?:if|when|before|unless)\b.{0,60}\b(?:i (?:will|am going to|might|swear)|i (?:would|could)) .{0,15}(?:die|kill myself|scream|jump|throw myself|cry)\b|\bkill myself\b.{0,15}\b(?:if|because|when|before|over)\b",
    "distress": r"\b(?:sad|alone|lonely|hopeless\w*|worthless|tired|exhausted|empty|numb|cry|crying|cried|burden|pointless|useless|miserable|depress\w*|anxi\w+|overwhelm\w*|stress\w*|panic\w*|scared|afraid|hurts?|pain|broken|lost|suffer\w*|struggl\w*|guilt\w*|asham\w*|helpless|desperate|hate (?:myself|my life)|falling apart|failure|heartbroken|devastated|grief|grieving|miss (?:him|her|them)|isolated|trapped|nightmare)\b",
    "hopeless": r"\b(?:no (?:point|hope|way out|reason|future|purpose|one (?:cares|would|will|loves|understands))|can not (?:go on|do this|take (?:it|this)|keep|live|handle|cope|stand)|giv(?:e|ing) up|given up|nothing (?:left|matters|helps|will|to live)|what is the point|better off|nobody (?:cares|would|will|loves|understands)|done with (?:life|everything|living|it all)|sick of (?:life|living|it all|everything|being)|tired of (?:life|living|it all|everything|being|fighting|trying|existing)|not worth|hate (?:my|this) life|hate living)\b",
    "passive": r"\b(?:not wake up|never wake|never (?:been )?born|disappear|vanish|not exist|stop existing|not (?:want to )?be (?:here|alive)|not want to (?:live|exist|be|wake)|fall asleep (?:and|forever)|sleep forever|go to sleep and|better off (?:dead|without)|hit by (?:a|the)|would not (?:mind|care) (?:if|dying)|cease to exist|everything to stop|it to (?:stop|end|be over)|make it stop)\b",
    "life": r"\b(?:life|alive|live|living|exist\w*)\b",
    "die word": r"\b(?:die|dies|died|dying|dead|death|kill\w*|suicid\w*|murder\w*)\b",
    "question": r"\?|^(?:how|what|why|when|where|who|can|could|should|is|are|do|does|which|would)\b",
    "help sought": r"\b(?:what (?:should|can|do) i|how (?:do|can|should) i (?:help|support|talk|cope|deal|tell)|any advice|advice|please help|help me|need help|worried about|need (?:someone|to talk)|talk to)\b",
    "care": r"\b(?:therap\w*|counsel\w*|psychiatr\w*|diagnosed|medication|antidepressants?|bipolar|ptsd|adhd|ocd|anorexi\w*|bulimi\w*|eating disorder|hospital\w*|doctor|crisis line|hotline|disorder|symptoms?)\b",
    "calm": r"\b(?:meditat\w*|mindful\w*|journal\w*|self care|routine|habits?|sleep better|better (?:now|today|lately)|improv\w*|proud|happy|thankful|good day|feeling (?:good|great|better|okay|fine)|love (?:it|this|that|my job)|excited|great|awesome|nice|thanks?)\b",
    "everyday": r"\b(?:recipes?|cook\w*|weather|flights?|bank|credit|card|account|calendar|restaurants?|movie times|alarm|reminder|songs?|shopping|car|phone|laptop|translate|spell|email|meeting|hotel|pay|bill|traffic to|directions|insurance|password|workout|gym|diet|sugar|smoking|coffee|garden\w*|move|moving|job|office)\b",
    "short": r"^\S+(?: \S+){0,4} ?$",
    "long": r"^(?:\S+ ){60,}",
}
_PRODUCTS = [
    ("die word", "self"),
    ("die word", "joke"),
    ("die word", "fiction"),
    ("die word", "technical"),
    ("die word", "other"),
    ("die word", "past"),
    ("die word", "academic"),
    ("die word", "creatures"),
    ("die word", "gaming"),
    ("die word", "distress"),
    ("die verb", "now"),
    ("die verb", "i will"),
    ("die verb", "hopeless"),
    ("die verb", "question"),
    ("means", "distress"),
    ("means", "die word"),
    ("goodbye", "self"),
    ("last", "distress"),
    ("hurt another", "self"),
    ("distress", "hopeless"),
    ("self harm", "self"),
    ("come home", "self"),
    ("when gone", "forgive"),
]

NAMES: tuple[str, ...] = (*_BITS, *(f"{left} & {right}" for left, right in _PRODUCTS))
MOST_CHARACTERS = 4000  # a window is never longer; rules on more would only cost time


# The positions of the rules that speak of danger by themselves.
DANGER = [
    NAMES.index(name)
    for name in (
        "wish to die", "wish i were dead", "die verb", "suicide word", "thinking of it", "plan", "means",
        "means at oneself", "own means", "took", "goodbye", "note", "when gone", "last", "forgive", "come home",
        "attempt", "self harm", "hurt another", "will hurt another", "should be hurt", "weapon at place", "how to die",
        "doses", "not want to die", "hopeless", "passive", "die word",
    )
]  # fmt: skip


def speaks_of_danger(wording: str) -> bool:
    """Whether any rule that speaks of danger by itself holds of this plain wording."""
    return bool(rule_bits(wording)[DANGER].any())


@lru_cache(maxsize=1)
def _compiled() -> list[re.Pattern[str]]:
    return [re.compile(pattern) for pattern in _BITS.values()]


def rule_bits(wording: str) -> NDArray[np.float32]:
    """One 0 or 1 per entry of `NAMES`."""
    wording = wording[:MOST_CHARACTERS]
    plain = {name: bool(pattern.search(wording)) for name, pattern in zip(_BITS, _compiled(), strict=True)}
    products = [plain[left] and plain[right] for left, right in _PRODUCTS]
    return np.array([*plain.values(), *products], dtype=np.float32)
