"""One settings file for every way of running Neuron; what differs comes from the environment."""

import os
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static

from neuron_site import env

# Read by numpy when it is first imported. Matrices here are small: more threads only spin, 35 ms instead of 1 for
# the 300 × 300 of a search on a busy machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

BASE_DIR = env.BASE_DIR
VAR_DIR = env.folder("NEURON_VAR", BASE_DIR / "var")
PORT = env.integer("PORT", default=8000, least=1, most=65535)
HOST = env.text("HOST", "127.0.0.1")

# Without a key every session could be forged, so there is no default: `make run` keeps one in var/.
SECRET_KEY = env.text("SECRET_KEY")
if not SECRET_KEY:
    raise ImproperlyConfigured("SECRET_KEY is not set. Start with `make run`, or set it in the environment.")
DEBUG = env.boolean("DEBUG")

# Behind TLS (a reverse proxy or PaaS) set NEURON_URL=https://…; it decides cookies, HSTS and links in mail.
PUBLIC_URL = env.text("NEURON_URL", f"http://127.0.0.1:{PORT}").rstrip("/")
TLS = PUBLIC_URL.startswith("https://")
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
_public_host = PUBLIC_URL.split("://", 1)[-1].split("/", 1)[0].rsplit(":", 1)[0]
if _public_host and _public_host not in ALLOWED_HOSTS:
    ALLOWED_HOSTS.append(_public_host)
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL] if TLS else []

INSTALLED_APPS = [
    "unfold",
    "neuron_site",
    "conversations",
    "safety",
    "memory",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "django_htmx",
    "template_partials",
    "heroicons",
    "csp",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "neuron_site.middleware.AdminContentSecurity",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "conversations.middleware.LocalTimeMiddleware",
]

ROOT_URLCONF = "neuron_site.urls"
ASGI_APPLICATION = "neuron_site.asgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# --- Data -------------------------------------------------------------------------------------------------

DATABASES: dict[str, Any] = {
    "default": {
        **env.env.db_url("DATABASE_URL", default="postgres://localhost/neuron"),
        "ENGINE": "django.db.backends.postgresql",
        "CONN_HEALTH_CHECKS": True,
        "CONN_MAX_AGE": 0,
    }
}
# A pool, because under ASGI each request runs in a thread of its own; a read that waits for a connection longer than
# the timeout is refused rather than left hanging. With the database away so long waits somebody in danger, too.
DATABASES["default"].setdefault("OPTIONS", {}).update(
    {
        "pool": {"min_size": 0, "max_size": env.integer("DATABASE_POOL", default=20, least=2), "timeout": 5},
        "connect_timeout": 5,
        "application_name": "neuron",
    }
)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.text("REDIS_URL", "redis://localhost:6379/0")
CACHES = {
    "default": {
        "BACKEND": "neuron_site.cache.ForgivingRedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "neuron",
        "OPTIONS": {
            "pool_class": "neuron_site.cache.SharedPool",
            "socket_timeout": 2,
            "socket_connect_timeout": 2,
        },
    }
}

# --- Jobs: the options that keep a request from hanging on a dead broker ------------------------------------

CELERY_BROKER_URL = REDIS_URL.replace("unix://", "redis+socket://", 1)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False  # rows, leases and the sweeper give the guarantee; late acks killed workers
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # A hint is tried once. Tried again, each kept a request of a person for six seconds while the broker was down.
    "max_retries": 0,
    "socket_timeout": 5,
    "socket_connect_timeout": 2,
    "socket_keepalive": True,
    "health_check_interval": 10,
    "visibility_timeout": 3600,
}
CELERY_TIMEZONE = "UTC"

# --- People -----------------------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
ACCOUNT_ADAPTER = "conversations.accounts.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_LOGOUT_REDIRECT_URL = "/accounts/login/"
ACCOUNT_SESSION_REMEMBER = True
SIGNUP_OPEN = env.boolean("NEURON_SIGNUP_OPEN")

# Kept in the cache too: a bell is heard even while the database is away.
SESSION_ENGINE = "django.contrib.sessions.backends.cached_db"
SESSION_COOKIE_AGE = 60 * 60 * 24 * 30
SESSION_COOKIE_NAME = f"neuron_session_{PORT}"  # cookies ignore ports: two copies on one host must not mix
CSRF_COOKIE_NAME = f"neuron_csrf_{PORT}"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = TLS
CSRF_COOKIE_SECURE = TLS
SECURE_SSL_REDIRECT = TLS and env.boolean("SECURE_SSL_REDIRECT", default=True)
SECURE_HSTS_SECONDS = 60 * 60 * 24 * 365 if TLS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = TLS
SECURE_HSTS_PRELOAD = TLS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if TLS else None
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "conversations.views.errors.csrf_failure"
# Home use is plain HTTP on one machine, where there is no TLS for these to speak of; with NEURON_URL=https://…
# every one of them is on.
SILENCED_SYSTEM_CHECKS = [] if TLS else ["security.W004", "security.W008", "security.W012", "security.W016"]

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "connect-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    },
}

# --- API --------------------------------------------------------------------------------------------------

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "knox.auth.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["neuron_site.parsers.JSONParser"],
    "DEFAULT_PAGINATION_CLASS": "neuron_site.pagination.CursorPages",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "neuron_site.problems.exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
REST_KNOX = {"TOKEN_TTL": None, "AUTH_HEADER_PREFIX": "Bearer"}
SPECTACULAR_SETTINGS = {
    "TITLE": "Neuron",
    "DESCRIPTION": "Talk to Neuron, and find what was said.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "neuron_site.openapi.describe_problems",
    ],
    "ENUM_NAME_OVERRIDES": {
        "ModeEnum": "conversations.models.Mode",
        "TurnStatusEnum": "conversations.models.Turn.Status",
        "TurnActionEnum": "conversations.models.Turn.Action",
        "ImportStateEnum": "conversations.models.ImportJob.State",
        "BellStateEnum": "safety.models.BellEvent.State",
    },
}

# --- Language, time, files ----------------------------------------------------------------------------------

LANGUAGE_CODE = "en"
TIME_ZONE = env.text("TIME_ZONE", "UTC")
USE_TZ = True
USE_I18N = True
STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": VAR_DIR / "files"},
    },
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 2_621_440
FILE_UPLOAD_TEMP_DIR = None
IMPORT_MAX_BYTES = env.integer("NEURON_IMPORT_MAX_MB", default=2048, least=1) * 2**20
EMAIL_CONFIG = env.env.email_url("EMAIL_URL", default="dummymail://")
vars().update(EMAIL_CONFIG)
EMAIL_TIMEOUT = 20  # seconds; a mail server that is silent must not hold a worker
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "neuron@localhost")

# --- The model, the embedder, the engram --------------------------------------------------------------------

NEURON_MODEL = env.text("NEURON_MODEL")
NEURON_MODEL_URL = env.text("NEURON_MODEL_URL")
NEURON_MODEL_KEY = env.text("NEURON_MODEL_KEY")
NEURON_MODEL_TIMEOUT_S = env.integer("NEURON_MODEL_TIMEOUT_S", default=60, least=1, most=600)
NEURON_PROMPT_TOKENS = env.integer("NEURON_PROMPT_TOKENS", default=6000, least=1000)
NEURON_EMBEDDER_URL = env.text("NEURON_EMBEDDER_URL")
NEURON_EMBEDDER_MODEL = env.text("NEURON_EMBEDDER_MODEL")
NEURON_EMBEDDER_KEY = env.text("NEURON_EMBEDDER_KEY")
ENGRAM_URL = env.text("ENGRAM_URL").rstrip("/")
ENGRAM_TOKEN = env.text("ENGRAM_TOKEN")
ENGRAM_SCREENING = "safety.incoming.is_danger"  # what memory asks before text from elsewhere is recalled
ENGRAM_OWNER = env.text("ENGRAM_OWNER")
ENGRAM_TIMEOUT_MS = env.integer("ENGRAM_TIMEOUT_MS", default=10_000, least=100, most=600_000)
ENGRAM_CONNECT_TIMEOUT_MS = env.integer("ENGRAM_CONNECT_TIMEOUT_MS", default=3_000, least=100, most=60_000)
ENGRAM_MAX_MB = env.integer("ENGRAM_MAX_MB", default=64, least=1, most=4096)
ENGRAM_MIRROR_BELLS = env.boolean("ENGRAM_MIRROR_BELLS")
NEURON_STEWARD_WEBHOOK = env.text("NEURON_STEWARD_WEBHOOK")
SECOND_LOOK_READER = "conversations.llm.second_look.ModelReader"
NEURON_SECOND_LOOK = env.boolean("NEURON_SECOND_LOOK", default=True)
NEURON_COUNTRY = env.text("NEURON_COUNTRY").upper()

# --- Logs: never a person's words ---------------------------------------------------------------------------

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env.text("LOG_LEVEL", "INFO")},
    "loggers": {
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
        "celery": {"level": "WARNING"},
        "kombu": {"level": "WARNING"},
        "uvicorn.access": {"level": "WARNING"},
    },
}

UNFOLD = {
    "SITE_TITLE": "Neuron",
    "SITE_HEADER": "Neuron",
    "SITE_SYMBOL": "neurology",
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("neuron.svg")}],
    "DASHBOARD_CALLBACK": "safety.admin.dashboard",
}
