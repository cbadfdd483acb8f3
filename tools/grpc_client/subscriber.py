"""gRPC for Python: questions of `aaep ask` answered, who is turned away, health, reflection, and the end."""

import contextlib
import json
import queue
import subprocess

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

import subscriber_pb2
import subscriber_pb2_grpc
from support import AAEP, NEVER_SENT, PATIENCE, Hub, check, end, reply, request, resolution, run

# Hours, as B.5.4 advises.
DEADLINE = 8 * 3600


class Call:
    """One call of a subscriber."""

    def __init__(self, channel, token=None):
        self.to_say = queue.Queue()
        metadata = [("authorization", f"Bearer {token}")] if token else None
        stub = subscriber_pb2_grpc.AaepServiceStub(channel)
        self.heard = stub.Subscribe(iter(self.to_say.get, None), metadata=metadata, timeout=DEADLINE)

    def say(self, message):
        self.to_say.put(subscriber_pb2.AaepMessage(json=json.dumps(message).encode()))

    def say_no_more(self):
        self.to_say.put(None)

    def hear(self):
        message = next(self.heard)
        heard = json.loads(message.json)
        if heard["type"] != message.message_type:
            check(False, "The type of a message is said beside it.", message)
        return heard

    def hear_until(self, wanted):
        while True:
            message = self.hear()
            if wanted(message):
                return message

    def subscribe(self):
        self.say(request())
        accepted = self.hear()
        check(accepted["type"] == "subscription.accepted", "A subscription is accepted.", accepted)
        return accepted["subscription_id"]

    def ends_with(self):
        """The status at the end, and the close code beside it."""
        with contextlib.suppress(grpc.RpcError):
            for _ in self.heard:
                pass
        beside = dict(self.heard.trailing_metadata() or ())
        return self.heard.code(), beside.get("aaep-close-code")


@contextlib.contextmanager
def call(hub, token=None):
    with grpc.insecure_channel(hub.address) as channel:
        one = Call(channel, token)
        try:
            yield one
        finally:
            one.say_no_more()
            one.heard.cancel()


@contextlib.contextmanager
def asking(hub, question):
    """`aaep ask`, as a program of its own."""
    arguments = [AAEP, "ask", question, "--irreversible", "--hub", hub.url]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=hub.environment)
    try:
        yield process
    finally:
        end(process)


def of_kind(kind):
    return lambda message: message["type"] == kind


def a_question_is_answered(hub, decision, code):
    print(f"A question is answered with {decision}.")
    with call(hub) as wire:
        subscription = wire.subscribe()
        with asking(hub, "Delete the old photos?") as agent:
            asked = wire.hear_until(of_kind("aaep:agent.awaiting.confirmation"))
            wire.say(reply(subscription, NEVER_SENT, "accept"))
            error = wire.hear_until(of_kind("agentvoice:error"))
            check(error["error"] == "invalid_token", "A forged reply does not count.", error)
            check(agent.poll() is None, "The agent still waits.")
            wire.say(reply(subscription, asked["reply_token"], decision))
            settled = resolution(wire.hear_until(resolution))
            check(settled["outcome"] == decision and settled["decided_by"] == "reply",
                  "The stream says how it was settled.", settled)
            check(agent.wait(PATIENCE) == code, f"aaep ask ends with exit code {code}.", agent.returncode)
        wire.say({"type": "subscription.close", "subscription_id": subscription})
        ended = wire.ends_with()
        check(ended == (grpc.StatusCode.OK, "4005"), "The end that the subscriber wanted is OK, with 4005.", ended)


def who_is_turned_away(hub):
    print("Who is turned away hears why.")
    with call(hub, "aaep_wrong") as wire:
        ended = wire.ends_with()
        check(ended == (grpc.StatusCode.UNAUTHENTICATED, "4002"), "A wrong token is unauthenticated, 4002.", ended)
    with call(hub) as wire:
        wire.say(request(aaep_version="9.0.0"))
        rejected = wire.hear()
        check(rejected["reason_code"] == "version_unsupported", "A version that nobody speaks is rejected.", rejected)
        ended = wire.ends_with()
        check(ended == (grpc.StatusCode.FAILED_PRECONDITION, "4001"), "Then the call fails with 4001.", ended)
    with call(hub) as wire:
        wire.subscribe()
        wire.say_no_more()
        ended = wire.ends_with()
        check(ended == (grpc.StatusCode.OK, "1000"), "Who has said all is let go, and that is OK.", ended)


def what_the_hub_says_of_itself(hub):
    print("What the hub says of itself.")
    with grpc.insecure_channel(hub.address) as channel:
        health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
        check(health.status == health_pb2.HealthCheckResponse.SERVING, "The hub serves.", health)
        services = ProtoReflectionDescriptorDatabase(channel).get_services()
        check("aaep.v1.AaepService" in services, "It names its services.", services)
        manifest = subscriber_pb2_grpc.AaepServiceStub(channel).GetManifest(
            subscriber_pb2.GetManifestRequest(), timeout=PATIENCE)
        transports = json.loads(manifest.json)["transports_supported"]
        check("grpc" in transports, "Its manifest names gRPC.", transports)


def main():
    with Hub() as hub:
        a_question_is_answered(hub, "accept", 0)
        a_question_is_answered(hub, "reject", 1)
        who_is_turned_away(hub)
        what_the_hub_says_of_itself(hub)
        with call(hub) as wire:
            wire.subscribe()
            hub.stop()
            ended = wire.ends_with()
            check(ended == (grpc.StatusCode.UNAVAILABLE, "1001"), "A hub that stops says so with 1001.", ended)


run(main)
