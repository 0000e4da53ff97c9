"""The types that come with Ropewalk: by name, each as `module:class`."""

from typing import Final

BUILTIN: Final = {
    "if": "ropewalk.nodes.control:If",
    "switch": "ropewalk.nodes.control:Switch",
    "noop": "ropewalk.nodes.control:Noop",
    "note": "ropewalk.nodes.control:Note",
    "fail": "ropewalk.nodes.control:Fail",
    "log": "ropewalk.nodes.control:Log",
    "set": "ropewalk.nodes.shaping:Set",
    "merge": "ropewalk.nodes.merging:Merge",
    "filter": "ropewalk.nodes.lists:Filter",
    "sort": "ropewalk.nodes.lists:Sort",
    "limit": "ropewalk.nodes.lists:Limit",
    "split": "ropewalk.nodes.lists:Split",
    "aggregate": "ropewalk.nodes.grouping:Aggregate",
    "dedupe": "ropewalk.nodes.kv:Dedupe",
    "kv.get": "ropewalk.nodes.kv:KvGet",
    "kv.set": "ropewalk.nodes.kv:KvSet",
    "kv.delete": "ropewalk.nodes.kv:KvDelete",
    "kv.increment": "ropewalk.nodes.kv:KvIncrement",
    "text.template": "ropewalk.nodes.templates:TextTemplate",
    "json": "ropewalk.nodes.tables:Json",
    "csv.parse": "ropewalk.nodes.tables:CsvParse",
    "csv.write": "ropewalk.nodes.tables:CsvWrite",
    "xml": "ropewalk.nodes.xml:Xml",
    "html.extract": "ropewalk.nodes.markup:HtmlExtract",
    "markdown.render": "ropewalk.nodes.markup:MarkdownRender",
    "datetime": "ropewalk.nodes.dates:DateTime",
    "crypto.hash": "ropewalk.nodes.crypto:Hash",
    "crypto.hmac": "ropewalk.nodes.crypto:Hmac",
    "crypto.sign": "ropewalk.nodes.crypto:Sign",
    "crypto.verify": "ropewalk.nodes.crypto:Verify",
    "delay": "ropewalk.nodes.waiting:Delay",
    "wait": "ropewalk.nodes.waiting:WaitFor",
    "approval": "ropewalk.nodes.waiting:Approval",
    "subworkflow": "ropewalk.nodes.waiting:Subworkflow",
    "python": "ropewalk.nodes.python:Python",
    "code.python": "ropewalk.nodes.code:CodePython",
    "http.request": "ropewalk.nodes.http.request:HttpRequest",
    "file.read": "ropewalk.nodes.file:FileRead",
    "file.write": "ropewalk.nodes.file:FileWrite",
    "file.list": "ropewalk.nodes.file:FileList",
    "file.move": "ropewalk.nodes.file:FileMove",
    "file.delete": "ropewalk.nodes.file:FileDelete",
    "email.send": "ropewalk.nodes.email:EmailSend",
    **{
        name: f"ropewalk.nodes.presets:{name}"
        for name in (
            *("slack.send", "github.issue", "github.comment", "github.dispatch", "stripe.charge", "stripe.refund"),
            *("stripe.customer", "stripe.search", "telegram.send", "discord.send", "google.sheets.append"),
            *("google.sheets.read", "notion.page", "airtable.records"),
        )
    },
}
"""Each is imported when it is first asked for."""
