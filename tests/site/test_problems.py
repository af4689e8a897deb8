"""Which failures of the database mean that it is away. They come from a real one."""

import psycopg
import pytest
from django.db import OperationalError, connection

from neuron_site.problems import database_is_away


@pytest.mark.django_db
def test_a_statement_that_took_too_long_is_no_database_that_is_away() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 20")
        with pytest.raises(OperationalError) as cancelled:
            cursor.execute("SELECT pg_sleep(5)")
    assert not database_is_away(cancelled.value)


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_connection_that_the_server_ended_is_one() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    with psycopg.connect(**connection.get_connection_params() | {"autocommit": True}) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
    with pytest.raises(OperationalError) as lost, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert database_is_away(lost.value)
    connection.close()


def test_what_is_no_failure_of_the_connection_is_none() -> None:
    assert not database_is_away(ValueError("57P01"))
