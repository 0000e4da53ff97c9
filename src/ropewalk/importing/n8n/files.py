"""Files: on the disk, in buckets, and what is read from them and written into them."""

from typing import Any

from ropewalk.importing.n8n.flows import Flow, braces
from ropewalk.importing.n8n.javascript import Untranslatable
from ropewalk.importing.n8n.table import Desk, Made, Out, translates

_TO = {"csv": "csv.write", "xlsx": "xlsx.write", "xls": "xlsx.write", "toJson": "json", "ods": ""}
_S3 = {"upload": "s3.put", "download": "s3.get", "delete": "s3.delete", "getAll": "s3.list", "search": "s3.list"}


@translates("readWriteFile", "readBinaryFile", "writeBinaryFile")
def disk(desk: Desk) -> Made:
    desk.differs("the path is one of the workspace's folder")
    kind = desk.source.kind
    if kind == "readBinaryFile" or (kind == "readWriteFile" and desk.get("operation", default="read") == "read"):
        path = (desk.text("fileSelector") or desk.text("filePath")).lstrip("/")
        if any(each in path for each in "*?["):
            raise Untranslatable("it reads many files by a pattern: see file.list, and a map of file.read")
        return Made([desk.node("file.read", {"path": path}, reaches=True)], {0: desk.each(file=".file")})
    asked = {"path": desk.text("fileName").lstrip("/"), "file": braces(desk.file)}
    return Made([desk.node("file.write", asked, reaches=True)], {0: desk.passed()})


@translates("awsS3", "s3")
def s3(desk: Desk) -> Made:
    operation = str(desk.get("operation", default="upload"))
    if desk.get("resource", default="file") != "file" or operation not in _S3:
        raise Untranslatable(f"the operation {operation!r} has no equal here")
    asked: dict[str, Any] = {"bucket": desk.text("bucketName")}
    match _S3[operation]:
        case "s3.list":
            made = desk.node("s3.list", asked, reaches=True)
            return Made([made], {0: desk.lists(".objects")})
        case "s3.put":
            content = (
                {"text": desk.text("fileContent")} if desk.get("binaryData") is False else {"file": braces(desk.file)}
            )
            made = desk.node("s3.put", {**asked, "key": desk.text("fileName"), **content}, reaches=True)
            return Made([made], {0: desk.each()})
        case type_:
            made = desk.node(type_, {**asked, "key": desk.text("fileKey")}, reaches=True)
            return Made([made], {0: desk.each(file=".content" if type_ == "s3.get" else None)})


@translates("extractFromFile", "spreadsheetFile")
def read(desk: Desk) -> Made:
    operation = str(desk.get("operation", default="fromFile" if desk.source.kind == "spreadsheetFile" else "csv"))
    if operation == "toFile":
        return _table(desk, str(desk.get("fileFormat", default="xlsx")))
    kind = str(desk.get("fileFormat", default="xlsx")) if operation == "fromFile" else operation
    match kind:
        case "csv":
            asked: dict[str, Any] = {"file": braces(desk.file)}
            return Made([desk.node("csv.parse", asked)], {0: desk.lists()})
        case "xlsx":
            return Made([desk.node("xlsx.read", {"file": braces(desk.file)})], {0: desk.lists(".rows")})
        case "fromJson":
            desk.differs("its output is the value itself, and not {data: …}")
            return Made([desk.node("json", {"value": braces(desk.file)})], {0: desk.each()})
        case _:
            raise Untranslatable(f"the kind of file {kind!r} has no equal here")


@translates("convertToFile")
def write(desk: Desk) -> Made:
    return _table(desk, str(desk.get("operation", default="csv")))


def _table(desk: Desk, kind: str) -> Made:
    """One file of all items."""
    type_ = _TO.get(kind)
    if not type_:
        raise Untranslatable(f"the kind of file {kind!r} has no equal here")
    items = braces(desk.flow.items())
    name = desk.text("options", "fileName")
    asked: dict[str, Any] = {"do": "write", "value": items} if type_ == "json" else {"items": items}
    if type_ != "xlsx.write":
        asked["as"] = "file"
    if name:
        asked["fileName"] = name
    output = f"nodes.{desk.id}.output"
    flow = Flow(output, file=output)
    return Made([desk.node(type_, asked, per_item=False)], {0: Out(flow, desk.id)})
