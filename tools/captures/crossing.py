"""Three agents at once, two of which ask in the same moment, while the third goes on."""

import threading

from stage import Agent, at_once


def play(stage):
    mailer = Agent(stage, "mailer", "Mailer", 37)
    cleaner = Agent(stage, "cleaner", "Cleaner", 41)
    reader = Agent(stage, "reader", "Reader", 43)
    together = threading.Barrier(2)

    def mailing():
        mailer.start("Writing to the people who came.")
        mailer.call("read_file", "Reading guests.csv", "31 people", (1, 2))
        mailer.say("I wrote one letter for all of them. It thanks them and names the day of the next meeting, "
                   "which is the third of March.")
        mailer.wait(1)
        together.wait()
        outcome = mailer.confirm("Send the letter to 31 people.", "Letters cannot be called back.", risk_level="medium",
                                 irreversible=True, tool="send_mail", timeout_seconds=120)
        assert outcome == "reject", outcome
        mailer.say("I sent nothing. The letter is kept as a draft.")
        mailer.end("The letter is in drafts/guests.txt.")

    def cleaning():
        cleaner.start("Making room on the disk.")
        cleaner.call("list_files", "Looking for large files", "12 files of 80 GB", (2, 3))
        cleaner.say("Most of it are three old disk images. I would keep the newest one.")
        together.wait()
        stage.after(24, stage.types, "1 no")
        stage.after(40, stage.types, "2 no")
        outcome = cleaner.confirm("Delete two disk images of 2024.", "They cannot be restored.", risk_level="high",
                                  irreversible=True, tool="delete_file", timeout_seconds=120)
        assert outcome == "reject", outcome
        cleaner.end("Nothing was deleted.")

    def reading():
        reader.start("Reading the reports of October.")
        for week in range(1, 9):
            reader.call("read_file", f"Reading report {week}", f"Report {week} has {week * 3} pages", (3, 5))
        reader.call("open_archive", "Opening the archive", "The archive is damaged", (2, 3), status="error")
        reader.end("Read 8 reports. The archive could not be opened.")

    at_once(mailing, cleaning, reading)
