"""What has to hold for every agent, tried with the agent itself."""

import re
import time

from editor import Editor
from machine import AAEP, CLAIM, PATIENCE, Scene, Terminal, expect

# What was tried of an agent that has no such case.
DOES_NOT_EXIST = "does not exist"


def set_up(scene, agent, *words):
    agent.set_up(scene)
    scene.aaep("agents", "add", agent.id, *words)


def rejected(model, agent):
    """A no keeps the folder, and is heard, although the model claims that it is gone."""
    with Scene(model) as scene:
        set_up(scene, agent)
        program = scene.run(agent.headless(), agent.environment(scene))
        scene.answer("no")
        scene.person.until("^settled: Refused")
        program.finish()
        scene.person.until("^done: .*not run")
        expect(scene.has_build() and scene.times_done() == 0, "the folder is gone, or the command ran")
        scene.never_heard("doing: Runs")
    return "kept, and heard as not run"


def accepted(model, agent):
    """A yes lets it be done, once."""
    with Scene(model) as scene:
        set_up(scene, agent)
        program = scene.run(agent.headless(), agent.environment(scene))
        scene.answer("yes")
        scene.person.until("^settled: Accepted")
        program.finish()
        scene.person.until("^doing: Runs: ")
        scene.person.until("^done: .*1 tool used")
        expect(not scene.has_build() and scene.times_done() == 1, f"done {scene.times_done()} times")
    return "done once"


def without_hub(model, agent):
    """Without a hub, what the person would be asked about does not run."""
    with Scene(model, with_hub=False) as scene:
        set_up(scene, agent)
        scene.run(agent.headless(), agent.environment(scene)).finish()
        expect(scene.has_build() and scene.times_done() == 0, "it ran without a hub")
    return "not run"


def unasked(model, agent, words=None, mode=None):
    """What the agent does without asking anybody is heard."""
    with Scene(model) as scene:
        set_up(scene, agent, "--policy", "tell")
        words = agent.headless() if words is None else words
        program = scene.run(words, agent.environment(scene))
        scene.person.until("^(doing|progress): .*Runs: ")
        scene.person.until("^done: ")
        program.finish()
        expect(scene.times_done() == 1, "it did not run, so nothing was approved")
    return "told"


def unasked_in_terminal(model, agent, *words):
    """In a terminal in its default mode, a model approves, and that is heard."""
    with Scene(model) as scene:
        set_up(scene, agent, "--policy", "tell")
        with Terminal(scene, agent.terminal(*words), agent.environment(scene)) as terminal:
            terminal.until(agent.READY)
            terminal.write(agent.prompt())
            scene.person.until("Without asking you. .*Runs: ")
            scene.person.until("^done: ")
        expect(scene.times_done() == 1, "it did not run, so nothing was approved")
    return "told: without asking you"


def at_keyboard(model, agent, *words, policy="risky", asks="Yes or no"):
    """An answer in the agent's own window closes the question here."""
    with Scene(model) as scene:
        set_up(scene, agent, "--policy", policy)
        with Terminal(scene, agent.terminal(*words), agent.environment(scene)) as terminal:
            terminal.until(agent.READY)
            terminal.write(agent.prompt())
            scene.person.until(asks)
            terminal.until(agent.DIALOG)
            time.sleep(1)
            terminal.keys("Enter")
            if asks == "Yes or no":
                scene.person.until("^settled: It is no longer asked")
            scene.person.until("Allowed in its own window. Runs: ")
            scene.person.until("^done: .*1 tool used")
        expect(not scene.has_build() and scene.times_done() == 1, f"done {scene.times_done()} times")
    return "withdrawn here" if asks == "Yes or no" else "only told here; it cannot be answered from here"


def closes_dialog(model, agent, *words, answer="no"):
    """An answer here closes the dialog in the agent's own window."""
    with Scene(model) as scene:
        set_up(scene, agent)
        with Terminal(scene, agent.terminal(*words), agent.environment(scene)) as terminal:
            terminal.until(agent.READY)
            terminal.write(agent.prompt())
            scene.person.until("Yes or no")
            time.sleep(1)
            scene.person.type(f"1 {answer}")
            scene.person.until("^settled: (Refused|Accepted)")
            scene.wait_for(lambda: not re.search(agent.DIALOG, terminal.screen()), "the dialog stays open", 20)
            scene.person.until("^done: |^ended: ")
            if answer == "no":
                expect(scene.has_build() and scene.times_done() == 0, "it ran")
            else:
                expect(scene.times_done() == 1, f"done {scene.times_done()} times")
    return "closed"


def question(model, agent):
    """The agent's own question to the person is answered here."""
    with Scene(model) as scene:
        set_up(scene, agent)
        with Terminal(scene, agent.terminal(), agent.environment(scene)) as terminal:
            terminal.until(agent.READY)
            terminal.write(agent.QUESTION)
            scene.person.until("Which colour shall the page have")
            scene.person.until("B. Green")
            time.sleep(1)
            scene.person.type("1 b")
            scene.person.until("^settled: Answered")
            terminal.until("Green")
            scene.person.until("^done: ")
    return "answered"


def helper(model, agent):
    """A helper is heard by its name, its end interrupts nothing, and nothing is heard twice."""
    with Scene(model) as scene:
        set_up(scene, agent)
        with Terminal(scene, agent.terminal("--permission-mode", "default"), agent.environment(scene)) as terminal:
            terminal.until(agent.READY)
            terminal.write(agent.HELPER)
            scene.person.until("helper: general-purpose")
            scene.person.until("^done: Done")
            time.sleep(2)
        scene.never_heard("Stopped by a person")
        said = scene.person.all_said()
        expect(said.count(CLAIM) == 1, f"the message was told {said.count(CLAIM)} times:\n{said}")
    return "by name"


def later(model, agent):
    """`claude -p` ends at a question, and goes on with the person's answer; with no other answer it does not."""
    with Scene(model) as scene:
        set_up(scene, agent, "--answer-later", "8")
        first = scene.run(agent.headless("--output-format", "json"), agent.environment(scene))
        scene.person.until("Yes or no")
        # Nobody listens any more.
        scene.person.__exit__()
        said = first.finish(2 * PATIENCE)
        expect('"tool_deferred"' in said, f"it did not end at the question: {said[-600:]}")
        session = re.search(r'"session_id":"([^"]+)"', said)[1]
        expect(scene.has_build(), "it ran before it was answered")
        listed = scene.run([AAEP, "attention"]).finish()
        is_listed = "rm -rf build" in listed and f"claude -p --resume {session}" in listed
        expect(is_listed, f"it is not on the attention list: {listed}")
        answered = scene.run([AAEP, "answer", "1", "yes"]).finish()
        time.sleep(1)
        expect(scene.has_build(), "it ran before the agent went on")
        resumed = [agent.program, "-p", "--resume", session, "--permission-mode", "default"]
        said = scene.run(resumed, agent.environment(scene)).finish()
        is_done = not scene.has_build() and scene.times_done() == 1
        expect(is_done, f"done {scene.times_done()} times; {answered}; {said}")
    return "ended, answered with aaep answer, done once after --resume"


def acp(scene, agent):
    return Editor([AAEP, "acp", "--", *agent.acp()], {**scene.env, **agent.environment(scene)}, scene.project)


def acp_answered_here(model, agent, mode, word):
    with Scene(model) as scene:
        agent.set_up(scene)
        with acp(scene, agent) as editor:
            turn = editor.begin(agent.acp_prompt(), mode)
            editor.question()
            scene.person.until("Permission required")
            time.sleep(1)
            scene.person.type(f"1 {word}")
            if word == "yes":
                scene.person.until("^settled: Accepted|^settled: Answered")
                editor.answer_of(turn)
                scene.person.until("^done: ")
                expect(not scene.has_build() and scene.times_done() == 1, f"done {scene.times_done()} times")
                return "done once"
            scene.person.until("^settled: Refused|^settled: Answered")
            editor.answer_of(turn)
            # An agent can also stop at a no, and then claims nothing.
            scene.person.until("[Ww]as not run|not run|not allowed|It was stopped")
            expect(scene.has_build() and scene.times_done() == 0, "it ran")
            return "kept, and heard as not run"


def acp_rejected(model, agent, mode=None):
    return acp_answered_here(model, agent, mode, "no")


def acp_accepted(model, agent, mode=None):
    return acp_answered_here(model, agent, mode, "yes")


def acp_in_editor(model, agent, mode=None):
    """An answer in the editor closes the question here."""
    with Scene(model) as scene:
        agent.set_up(scene)
        with acp(scene, agent) as editor:
            turn = editor.begin(agent.acp_prompt(), mode)
            asked = editor.question()
            scene.person.until("Permission required")
            editor.answer(asked, "reject_once")
            scene.person.until("^settled: It is no longer asked|^settled: .*elsewhere")
            editor.until(lambda: turn in editor.answers, "the end of the turn")
            expect(scene.has_build() and scene.times_done() == 0, "it ran")
    return "withdrawn here"


def acp_without_hub(model, agent, mode=None):
    """Without a hub, the editor decides as without us."""
    with Scene(model, with_hub=False) as scene:
        agent.set_up(scene)
        with acp(scene, agent) as editor:
            turn = editor.begin(agent.acp_prompt(), mode)
            editor.answer(editor.question(), "reject_once")
            editor.until(lambda: turn in editor.answers, "the end of the turn")
            expect(scene.has_build() and scene.times_done() == 0, "it ran")
    return "only the editor decides"


def acp_unasked(model, agent, heard="Runs", mode=None):
    """What runs in a mode in which nobody is asked is heard."""
    with Scene(model) as scene:
        agent.set_up(scene)
        with acp(scene, agent) as editor:
            turn = editor.begin(agent.prompt(), mode)
            editor.until(lambda: turn in editor.answers, "the end of the turn")
            expect(not editor.asked, "the agent asked")
            scene.person.until(heard)
            scene.person.until("^done: ")
    return "told"
