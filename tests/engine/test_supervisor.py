"""The event loop and its timers: kombu's hub."""

from __future__ import annotations

import simpy

from celerysim.engine.supervisor import Supervisor


class NoWriter:
    def wants_to_write(self) -> bool:
        return False

    def write(self):
        yield from ()


class Pipe:
    """A source whose messages each take a while to handle."""

    def __init__(self, env: simpy.Environment, supervisor: Supervisor, name: str, log: list):
        self.env, self.supervisor, self.name, self.log = env, supervisor, name, log
        self.messages = 0
        self.takes = 0.0

    def add(self, n: int = 1) -> None:
        self.messages += n
        self.supervisor.notify(self)

    def has_data(self) -> bool:
        return self.messages > 0

    def handle(self):
        self.messages -= 1
        yield self.env.timeout(self.takes)
        self.log.append((self.env.now, self.name))


def loop():
    env = simpy.Environment()
    supervisor = Supervisor(env)
    env.process(supervisor.run(NoWriter()))
    return env, supervisor, []


def every(env: simpy.Environment, log: list, takes: float = 0.0):
    def action():
        log.append(env.now)
        yield env.timeout(takes)

    return action


def test_a_repeated_timer_runs_first_after_one_period() -> None:
    env, supervisor, log = loop()
    supervisor.call_repeatedly(30.0, every(env, log))
    env.run(until=100.0)
    assert log == [30.0, 60.0, 90.0]


def test_a_repeated_timer_enters_itself_anew_when_its_action_is_done() -> None:
    env, supervisor, log = loop()
    supervisor.call_repeatedly(10.0, every(env, log, takes=0.5))
    env.run(until=33.0)
    assert log == [10.0, 20.5, 31.0]


def test_a_timer_waits_while_something_else_is_handled() -> None:
    env, supervisor, log = loop()
    pipe = Pipe(env, supervisor, "a", log)
    pipe.takes = 4.0
    supervisor.call_repeatedly(10.0, every(env, log))
    env.process(at(env, 8.0, pipe.add))
    env.run(until=25.0)
    assert log == [(12.0, "a"), 12.0, 22.0]


def test_a_cancelled_timer_does_nothing() -> None:
    env, supervisor, log = loop()
    timer = supervisor.call_later(1.0, every(env, log))
    timer.cancelled = True
    env.run(until=5.0)
    assert log == []


def test_sources_are_read_one_message_each_in_the_order_they_became_readable() -> None:
    env, supervisor, log = loop()
    a, b = Pipe(env, supervisor, "a", log), Pipe(env, supervisor, "b", log)
    b.add(2)
    a.add(2)
    env.run(until=1.0)
    assert [name for _, name in log] == ["b", "a", "b", "a"]


def test_two_handlers_never_overlap() -> None:
    env, supervisor, log = loop()
    a, b = Pipe(env, supervisor, "a", log), Pipe(env, supervisor, "b", log)
    a.takes = b.takes = 1.0
    a.add()
    b.add()
    env.run(until=5.0)
    assert log == [(1.0, "a"), (2.0, "b")]


def test_call_soon_does_not_wake_a_waiting_loop() -> None:
    env, supervisor, log = loop()
    env.process(at(env, 2.5, lambda: supervisor.call_soon(lambda: log.append(env.now))))
    env.run(until=20.0)
    # with no timer the loop polls once a second (Hub.create_loop)
    assert log == [3.0]


def at(env: simpy.Environment, time: float, action):
    yield env.timeout(time)
    action()
