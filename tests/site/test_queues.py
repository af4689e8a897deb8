"""Which queue a task goes to, and which a worker takes."""

from neuron_site.celery import ANSWERS, BACKGROUND, app


def _queue_of(task: str) -> str:
    return str(app.amqp.router.route({}, task)["queue"].name)


def test_only_answers_go_to_the_worker_that_is_kept_for_them():
    app.loader.import_default_modules()
    queues = {name: _queue_of(name) for name in app.tasks if not name.startswith("celery.")}
    assert [name for name, queue in queues.items() if queue == ANSWERS] == ["conversations.tasks.answer_turn"]
    assert set(queues.values()) == {ANSWERS, BACKGROUND}


def test_a_worker_that_is_not_told_which_takes_both():
    assert set(app.amqp.queues.consume_from) == {ANSWERS, BACKGROUND}


def test_no_task_reaches_both():
    bound = [(queue.exchange.name, queue.routing_key) for queue in app.amqp.queues.consume_from.values()]
    assert len(set(bound)) == len(bound)
