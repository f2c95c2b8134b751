"""Steps are found in loops of every common shape."""

from __future__ import annotations

import pytest

from profiling._child_steps import BEGIN, DROP, PAUSE, STEP, StepFinder


def play(finder: StepFinder, *events: tuple[object, ...]) -> list[str]:
    """Feed events and note which ones answered, as ``event:answer``."""
    answers = []
    for name, *args in events:
        found = getattr(finder, str(name))(*args)
        if found:
            answers.append(f"{name}:{found}")
    return answers


def test_loader_drives() -> None:
    finder = StepFinder()
    finder.optimizer_made(1)
    iteration = [("fetch", "train"), ("forward",), ("stepped", 1)]
    answers = play(finder, *iteration, *iteration, *iteration, ("fetch", "train", True))
    assert answers == [f"fetch:{BEGIN}", f"fetch:{STEP}", f"fetch:{STEP}", f"fetch:{PAUSE}"]
    assert finder.source == "loader"
    assert play(finder, *iteration) == [f"fetch:{BEGIN}"]  # the next epoch


def test_optimizer_drives() -> None:
    finder = StepFinder()
    finder.optimizer_made(1)
    answers = play(finder, ("activity",), ("forward",), ("stepped", 1), ("activity",), ("stepped", 1))
    assert answers == [f"activity:{BEGIN}", f"stepped:{STEP}", f"stepped:{STEP}"]
    assert finder.source == "optimizer"


def test_gradient_accumulation_over_a_loader() -> None:
    finder = StepFinder()
    finder.optimizer_made(1)
    half = [("fetch", "train"), ("forward",)]
    whole = [*half, *half, *half, ("stepped", 1)]
    assert play(finder, *whole, *whole, *whole) == [f"fetch:{BEGIN}", f"fetch:{STEP}", f"fetch:{STEP}"]


def fetched_ahead(batches: int, ahead: int) -> list[tuple[object, ...]]:
    """One epoch of a loop that holds ``ahead`` batches beside the one it trains on."""
    fetches: list[tuple[object, ...]] = [("fetch", "x", False, n == 0) for n in range(batches)] + [("fetch", "x", True)]
    events = fetches[: ahead + 1]
    for n in range(batches):
        if n:
            events += fetches[ahead + n : ahead + n + 1]
        events.append(("stepped", 1))
    return events


@pytest.mark.parametrize("ahead", [0, 1, 2, 3])
def test_a_loader_that_fetches_ahead_keeps_the_last_steps_of_its_epochs(ahead: int) -> None:
    finder = StepFinder()
    finder.optimizer_made(1)
    for _ in range(3):
        answers = play(finder, *fetched_ahead(7, ahead))
        assert len(answers) == 8 - (ahead == 0), answers  # without looking ahead, the end is the loop's next fetch
        if ahead == 0:
            answers += play(finder, ("fetch", "x", True))
        assert [a.partition(":")[2] for a in answers] == [BEGIN] + [STEP] * 6 + [PAUSE]


def test_an_epoch_of_two_batches_fetched_ahead_is_known_from_the_second_one_on() -> None:
    finder = StepFinder()
    finder.optimizer_made(1)
    epoch = [("fetch", "x", False, True), ("fetch", "x"), ("stepped", 1), ("fetch", "x", True), ("stepped", 1)]
    assert play(finder, *epoch) == [f"fetch:{BEGIN}", f"fetch:{PAUSE}"]
    assert play(finder, *epoch) == [f"fetch:{BEGIN}", f"fetch:{STEP}", f"stepped:{PAUSE}"]


def test_a_batch_taken_to_look_at_is_not_fetched_ahead() -> None:
    finder = StepFinder()
    finder.optimizer_made(1)
    train = [("fetch", "x"), ("stepped", 1)]
    look = ("fetch", "x", False, True)
    first = [("fetch", "x", False, True), ("stepped", 1)]
    answers = play(finder, look, *first, *train, *train, ("fetch", "x", True))
    assert answers == [f"fetch:{BEGIN}", f"fetch:{STEP}", f"fetch:{STEP}", f"fetch:{PAUSE}"]


def test_steps_that_were_expected_and_never_came_are_not_expected_again() -> None:
    finder = StepFinder()
    finder.optimizer_made(1)
    train = [("fetch", "x"), ("stepped", 1)]
    epoch = [
        ("fetch", "x", False, True),
        *train,
        *train,
        *train,
        ("fetch", "x", True),
    ]  # its first batch is left unused
    assert play(finder, *epoch)[-1] == f"fetch:{STEP}"
    play(finder, *epoch)
    assert play(finder, *epoch)[-1] == f"fetch:{PAUSE}"


def test_a_loader_that_fetches_ahead_while_gradients_accumulate() -> None:
    finder = StepFinder()
    finder.optimizer_made(1)
    epoch = [("fetch", "x"), ("fetch", "x"), ("fetch", "x", True), ("stepped", 1)]
    assert play(finder, *epoch, *epoch) == [f"fetch:{BEGIN}", f"stepped:{PAUSE}", f"fetch:{BEGIN}", f"stepped:{PAUSE}"]


def test_two_optimizers_without_a_loader() -> None:
    finder = StepFinder()
    finder.optimizer_made("D")
    finder.optimizer_made("G")
    iteration = [("forward",), ("stepped", "D"), ("forward",), ("stepped", "G")]
    assert play(finder, *iteration, *iteration) == [f"forward:{BEGIN}", f"stepped:{STEP}", f"stepped:{STEP}"]


def test_five_steps_of_the_critic_and_one_of_the_generator() -> None:
    finder = StepFinder()
    finder.optimizer_made("D")
    finder.optimizer_made("G")
    iteration = [*[("stepped", "D")] * 5, ("stepped", "G")]
    assert len(play(finder, ("forward",), *iteration, *iteration, *iteration)) == 1 + 3


def test_an_unused_optimizer_is_passed_over() -> None:
    finder = StepFinder()
    finder.optimizer_made("used")
    finder.optimizer_made("unused")
    answers = play(finder, ("forward",), *[("stepped", "used")] * 9)
    assert answers == [f"forward:{BEGIN}"] + [f"stepped:{STEP}"] * 4  # the first one covers six


def test_two_optimizers_over_a_loader() -> None:
    finder = StepFinder()
    finder.optimizer_made("D")
    finder.optimizer_made("G")
    iteration = [("fetch", "train"), ("stepped", "D"), ("stepped", "G")]
    assert play(finder, *iteration, *iteration) == [f"fetch:{BEGIN}", f"fetch:{STEP}"]


def test_evaluation_belongs_to_no_step() -> None:
    finder = StepFinder()
    finder.optimizer_made(1)
    train = [("fetch", "train"), ("stepped", 1)]
    check = [("fetch", "test"), ("forward",)]
    answers = play(finder, *train, *train, *check, *check, *train, *train)
    assert answers == [f"fetch:{BEGIN}", f"fetch:{STEP}", f"fetch:{PAUSE}", f"fetch:{BEGIN}", f"fetch:{STEP}"]


def test_inference_over_a_loader() -> None:
    finder = StepFinder()
    assert play(finder, *[("fetch", "x")] * 3, ("fetch", "x", True)) == [
        f"fetch:{BEGIN}", f"fetch:{STEP}", f"fetch:{STEP}", f"fetch:{PAUSE}",
    ]  # fmt: skip


def test_forward_calls_alone() -> None:
    finder = StepFinder()
    assert play(finder, *[("forward",)] * 3) == [f"forward:{BEGIN}", f"forward:{STEP}", f"forward:{STEP}"]
    assert finder.source == "module"


def test_several_modules_called_one_after_the_other_are_one_step() -> None:
    finder = StepFinder()
    calls = [finder.forward(module) for module in ("start", *3 * ("encoder", "loss"))]
    assert calls == ["begin", None, None, "step", None, "step", None]


def test_an_optimizer_that_never_steps_does_not_hide_calls_without_training() -> None:
    finder = StepFinder()
    finder.optimizer_made("unused")
    assert [finder.forward("model") for _ in range(66)].count("step") == 1
    training = StepFinder()
    training.optimizer_made("accumulating")
    training.activity(trains=True)
    assert "step" not in [training.forward("model") for _ in range(66)]


def test_the_scripts_first_mark_after_an_optimizers_step_ends_no_step_anew() -> None:
    finder = StepFinder()
    marks = []
    for _ in range(3):
        marks += [finder.activity(), finder.stepped("o"), finder.script_step()]
    assert marks == ["begin", "step", None, None, None, "step", None, None, "step"]


def test_one_fetch_for_the_whole_training() -> None:
    finder = StepFinder()
    finder.optimizer_made(1)
    answers = play(finder, ("fetch", "all"), *[("stepped", 1)] * 12)
    assert answers == [f"fetch:{BEGIN}"] + [f"stepped:{STEP}"] * 4  # the first one covers nine, then the loader is out
    assert finder.source == "optimizer"


def test_the_scripts_own_marks_win() -> None:
    finder = StepFinder()
    finder.optimizer_made(1)
    events = [("fetch", "x"), ("stepped", 1), ("script_step",)]
    assert play(finder, *events, *events) == [f"fetch:{BEGIN}", f"script_step:{STEP}", f"script_step:{STEP}"]
    assert finder.source == "script"


def test_a_forced_source_looks_at_nothing_else() -> None:
    finder = StepFinder("optimizer")
    finder.optimizer_made(1)
    assert play(finder, ("fetch", "x"), ("activity",), ("stepped", 1)) == [f"activity:{BEGIN}", f"stepped:{STEP}"]
    assert play(StepFinder("whole"), ("fetch", "x"), ("forward",), ("activity",), ("stepped", 1)) == []


def test_ten_steps_of_the_critic_are_one_step_once_the_generator_has_stepped_twice() -> None:
    finder = StepFinder()
    finder.optimizer_made("D")
    finder.optimizer_made("G")
    iteration = [*[("stepped", "D")] * 10, ("stepped", "G")]
    play(finder, ("forward",), *iteration, *iteration)
    assert play(finder, *iteration * 5) == [f"stepped:{STEP}"] * 5


def test_how_long_an_optimizer_was_waited_for_in_vain_is_kept() -> None:
    finder = StepFinder()
    finder.optimizer_made("used")
    finder.optimizer_made("unused")
    play(finder, *[("stepped", "used")] * 5)
    assert finder.waited_in_vain == 0
    play(finder, *[("stepped", "used")] * 5)
    assert finder.waited_in_vain == 6


def test_backward_calls_alone() -> None:
    finder = StepFinder()
    assert play(finder, *[("backward",)] * 3) == [f"backward:{BEGIN}", f"backward:{STEP}", f"backward:{STEP}"]
    assert finder.source == "backward"
    finder.optimizer_made(1)  # a look at the gradients before the training
    assert play(finder, ("backward",), ("stepped", 1)) == [f"stepped:{STEP}"]
    assert finder.source == "optimizer"


def test_backward_after_zero_grad_is_no_step_though_the_optimizer_was_made_before_anybody_looked() -> None:
    finder = StepFinder()
    iteration = [("zeroed",), ("backward",), ("stepped", 1)]
    assert play(finder, *iteration, *iteration) == [f"zeroed:{BEGIN}", f"stepped:{STEP}", f"stepped:{STEP}"]


def test_after_the_scripts_own_profiler_steps_are_found_as_without_it() -> None:
    finder = StepFinder()
    finder.optimizer_made(1)
    events = [("stepped", 1), ("script_step",)]
    assert len(play(finder, *events, *events)) == 2
    assert play(finder, ("script_done",)) == [f"script_done:{DROP}"]  # nothing ran after the last mark
    assert play(finder, *[("stepped", 1)] * 3) == [f"stepped:{BEGIN}", f"stepped:{STEP}", f"stepped:{STEP}"]
    assert finder.source == "optimizer"


@pytest.mark.parametrize("batches", [5, 80])
def test_batches_that_are_collected_first_are_no_steps(batches: int) -> None:
    finder = StepFinder()
    for key in (1, 2):
        finder.optimizer_made(key)
    collected = [("fetch", "x", False, n == 0) for n in range(batches)] + [("fetch", "x", True)]
    seen = len(play(finder, *collected))
    assert (seen > 1) == (batches > 64)  # so many, and it looks as if nobody trained
    assert finder.begins_to_train("zeroed", seen) == (batches > 64)
    turn = [("zeroed",), *[("stepped", 1)] * 5, ("zeroed",), ("stepped", 2)]
    answers = play(finder, *turn * 8)
    assert [a.partition(":")[2] for a in answers if not a.endswith(BEGIN)] == [STEP] * 8
    assert finder.source == "optimizer"


def test_training_that_begins_after_a_pass_over_the_loader_is_what_counts() -> None:
    finder = StepFinder()
    look = [("fetch", "x", False, True), *[("fetch", "x")] * 9, ("fetch", "x", True)]
    assert len(play(finder, *look)) == 11
    finder.optimizer_made(1)
    assert not finder.settled
    play(finder, ("fetch", "x", False, True))
    assert finder.begins_to_train("zeroed", 10)
    train = [("zeroed",), ("backward",), ("stepped", 1)]
    answers = play(finder, *train, *(("fetch", "x"), *train) * 8, ("fetch", "x", True))
    assert [a.partition(":")[2] for a in answers] == [BEGIN] + [STEP] * 8 + [PAUSE]
    assert finder.settled
    assert not finder.begins_to_train("stepped", 9)


def test_a_loop_that_trains_from_its_first_step_on_is_not_begun_anew() -> None:
    finder = StepFinder()
    iteration = [("fetch", "x"), ("forward", 1), ("backward",)]
    assert play(finder, ("fetch", "x", False, True)) == [f"fetch:{BEGIN}"]
    assert not finder.begins_to_train("backward", 0)
    assert play(finder, ("backward",), *iteration) == [f"fetch:{STEP}"]
    assert not finder.begins_to_train("backward", 1)
    forced = StepFinder("loader")
    play(forced, ("fetch", "x", False, True), ("fetch", "x"))
    assert not forced.begins_to_train("zeroed", 1)


def test_a_script_is_ended_for_steps_of_training_or_of_a_model() -> None:
    looked, run, before = StepFinder(), StepFinder(), StepFinder()
    for finder in (looked, run):
        play(finder, ("fetch", "x", False, True), ("fetch", "x"))
    play(run, ("forward", 1))
    before.optimizer_made(1)
    play(before, *(("fetch", "x"), ("forward", 1)) * 70)
    assert [finder.in_earnest for finder in (looked, run, before, StepFinder("loader"))] == [False, True, False, True]
    before.begins_to_train("zeroed", 70)
    assert before.in_earnest
