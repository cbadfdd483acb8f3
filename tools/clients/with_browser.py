"""A browser: a page of an allowed origin listens and answers, also over restarts; another page cannot."""

import agent
from support import Agent, Hub, ask_state, check, run
from webdriver import Browser, origin

LISTENING = "return document.getElementById('status').textContent === 'Listening.'"
QUESTION = "const it = document.getElementById('question'); return !it.hidden && it.dataset.token"
LINES = """return [...document.querySelectorAll('#events li')].map((it) => ({...it.dataset}))"""

# What a page of somebody else could try, with everything that it could have learnt.
FOREIGN = """
const [hub, subscription, token] = arguments;
const reply = JSON.stringify({type: 'confirmation.reply', reply_token: token, decision: 'accept',
    subscription_id: subscription, timestamp: new Date().toISOString(), decided_by: 'user'});
const attempt = async (options) => {
    try { return (await fetch(hub + '/aaep/v1/replies', {method: 'POST', body: reply, ...options})).type; }
    catch (error) { return error.name; }
};
const socket = new Promise((done) => {
    const it = new WebSocket(hub.replace('http', 'ws') + '/aaep/v1/ws', 'aaep.v1');
    it.onopen = () => done('open');
    it.onerror = () => done('refused');
});
const stream = new Promise((done) => {
    const it = new EventSource(hub + '/aaep/v1/events?subscription_id=' + subscription);
    it.onopen = () => done('open');
    it.onerror = () => done(it.readyState === EventSource.CLOSED ? 'refused' : 'again');
});
return (async () => ({
    asked: await attempt({headers: {'Content-Type': 'application/json'}}),
    plain: await attempt({mode: 'no-cors', headers: {'Content-Type': 'text/plain'}}),
    socket: await socket,
    stream: await stream,
    readable: await fetch(hub + '/aaep/v1/agents').then(() => 'read', (error) => error.name),
}))();
"""

OWN_SOCKET = """
const hub = arguments[0];
return new Promise((done) => {
    const it = new WebSocket(hub.replace('http', 'ws') + '/aaep/v1/ws', 'aaep.v1');
    it.onopen = () => it.send(JSON.stringify({type: 'subscription.request', aaep_version: '9.0.0',
        subscriber_id: 'a-page', capabilities: {}}));
    it.onclose = (event) => done(event.code);
});
"""


def count(session, first, last):
    """Publishes so many events; gives their ids."""
    numbers = range(first, last)
    told = [agent.publish("tool.invoked", session_id=session, tool="count", tool_call_id=f"call_{number}",
                          summary_normal=f"Counting: {number}.") for number in numbers]
    return [it["event_id"] for it in told]


def a_question_is_answered(browser, hub, pages):
    print("A page of an allowed origin listens and answers.")
    ours, foreign = pages
    browser.go_to(f"{ours}/?hub={hub.url}")
    browser.wait(LISTENING, "The page has subscribed with fetch and listens with EventSource.")
    subscription, place = browser.run("const it = document.body.dataset; return [it.subscription, it.location]")
    check(place == f"/aaep/v1/events?subscription_id={subscription}", "The page can read Location.", place)
    with Agent(hub) as asking:
        token = browser.wait(QUESTION, "The page shows the question.")
        a_foreign_page_gets_nothing(browser, hub, foreign, (subscription, token))
        asking.still_waits()
        browser.click("#accept")
        browser.wait("return document.querySelector('[data-outcome=accept]') && true",
                     "After a click on Yes the page hears that it was settled with yes.")
        asking.ends_with("accept", "reply")
    check(browser.run("return document.getElementById('question').hidden"), "The question is gone.")
    code = browser.run(OWN_SOCKET, hub.url)
    check(code == 4001, "A WebSocket of the page works too, and its close code can be read.", code)


def a_foreign_page_gets_nothing(browser, hub, foreign, ids):
    print("A page of another origin tries the same in another tab.")
    before = browser.window()
    browser.new_window()
    browser.go_to(f"{foreign}/?hub={hub.url}")
    browser.wait("return document.getElementById('status').textContent.startsWith('The hub cannot be reached')",
                 "It cannot subscribe.")
    found = browser.run(FOREIGN, hub.url, *ids)
    wanted = {"asked": "TypeError", "plain": "opaque", "socket": "refused", "stream": "refused",
              "readable": "TypeError"}
    check(found == wanted, "It cannot answer, open a stream or a WebSocket, or read anything.", found)
    status = ask_state(hub, ids[1])
    check(status == "open", "What a browser lets it send blindly answers nothing: the question is open.", status)
    browser.switch(before)


def the_page_misses_nothing(browser, hub):
    print("The hub is stopped and killed, and the page misses nothing.")
    seen = len(browser.run(LINES))
    began = agent.publish("session.started", summary_normal="Counting.")
    session, published = began["session_id"], [began["event_id"]]
    published += count(session, 0, 5)
    for end_of_hub in (hub.stop, hub.kill):
        end_of_hub()
        browser.wait("return document.getElementById('status').textContent === 'Connecting again.'",
                     "EventSource notices that the hub is gone.")
        hub.start()
        published += count(session, len(published), len(published) + 5)
        browser.wait(f"return document.querySelector('[data-id={published[-1]}]') && true",
                     "EventSource has connected again by itself and hears what came meanwhile.")
    heard = browser.run(LINES)[seen:]
    ids = [line["id"] for line in heard if line["urgency"] != "critical"]
    check(ids == published, f"All {len(published)} events came once and in order.", [ids, published])


def a_question_outlives_the_hub(browser, hub):
    print("The hub is killed while a question is open.")
    with Agent(hub) as asking:
        token = browser.wait(QUESTION, "The page shows the question.")
        hub.kill()
        hub.start()
        browser.wait(LISTENING, "The page listens again.")
        check(ask_state(hub, token) == "open", "The question is still open.")
        browser.click("#reject")
        browser.wait("return document.querySelector('[data-outcome=reject]') && true",
                     "After a click on No the page hears that it was settled with no.")
        asking.ends_with("reject", "reply")


def main():
    with origin() as ours, origin() as foreign, \
            Hub(f'[access]\nallowed_origins = ["{ours}"]\n') as hub, Browser() as browser:
        agent.HUB = hub.url
        a_question_is_answered(browser, hub, (ours, foreign))
        the_page_misses_nothing(browser, hub)
        a_question_outlives_the_hub(browser, hub)
        hub.stop()


run(main)
