"""Two agents that ask much: accepted, refused and claimed as done all the same, out of time, answered elsewhere."""

from stage import Agent, at_once


def play(stage):
    upgrade = Agent(stage, "upgrader", "Upgrader", 3)
    cleaner = Agent(stage, "cleaner", "Cleaner", 5)

    def upgrading():
        upgrade.start("Upgrading the database of the test server.")
        upgrade.wait(1, 2)
        upgrade.say("Before anything else I need a copy of the data.")
        stage.after(11, stage.types, "1 yes")
        outcome = upgrade.confirm("Copy the database orders to /backup.", "It takes about 2 GB of 14 GB.",
                                  risk_level="low", reversibility="reversible")
        assert outcome == "accept"
        upgrade.call("backup", "Copying the database", "1.9 GB copied", (3, 4))
        stage.after(14, stage.answers, 2, "2")
        outcome = upgrade.ask("awaiting.clarification", question="Which version should it be?",
                              accepted_response_kinds=["multiple_choice"], timeout_seconds=120,
                              choices=[{"value": "16", "label": "16, the one before"},
                                       {"value": "17", "label": "17, the newest"}])
        assert outcome == "answered"
        upgrade.state("thinking")
        upgrade.wait(6, 7)
        outcome = upgrade.confirm("Stop the server for the upgrade.", "Nobody can order for about five minutes.",
                                  risk_level="medium", timeout_seconds=12)
        assert outcome == "reject"
        upgrade.say("Nobody answered, so I leave the server running and the upgrade for later.")
        upgrade.end("Nothing was upgraded. The copy is in /backup.")

    def cleaning():
        cleaner.start("Freeing space on the test server.")
        cleaner.wait(32, 33)
        cleaner.storm([("list_directory", f"Listing /srv/{name}", None)
                       for name in ("cache", "logs", "uploads", "backup")])
        cleaner.wait(1, 2)
        stage.after(9, stage.types, "3 no")
        outcome = cleaner.confirm("Delete all 1,204 files in /srv/uploads.", "They are gone for good; there is no copy.",
                                  risk_level="high", irreversible=True,
                                  tool="delete_files")
        assert outcome == "reject"
        cleaner.wait(1, 2)
        cleaner.say("Done! All files in /srv/uploads were deleted successfully, and 3.1 GB are free now.")
        cleaner.wait(8, 9)
        stage.after(10, stage.types, "5 yes")
        outcome = cleaner.confirm("Empty /srv/cache.", "The next start takes longer.", risk_level="low",
                                  reversibility="reversible_with_effort", timeout_seconds=60)
        assert outcome == "accept"
        cleaner.call("empty_folder", "Emptying /srv/cache", "420 MB freed", (2, 3))
        cleaner.end("Done: the cache is empty.")

    at_once(upgrading, cleaning)
