"""Says what this interpreter can do: Python, torch, CUDA, devices, free memory. Printed as one JSON object.

Runs in the user's interpreter: standard library and torch only, Python 3.8.
"""

import json
import os
import sys

sys.path[:] = [p for p in sys.path if os.path.realpath(p or ".") != os.path.dirname(os.path.realpath(__file__))]


def describe():
    """Everything that is known; torch's own failures are told, not raised."""
    found = {
        "python": "%d.%d.%d" % sys.version_info[:3],
        "executable": sys.executable,
        "prefix": sys.prefix,
        "torch": None,
        "torch_error": "",
        "cuda_build": None,
        "hip_build": None,
        "devices": [],
        "cuda_error": "",
        "kineto": False,
    }
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            found["torch_error"] = str(error)
        return found
    except Exception as error:
        found["torch_error"] = "%s: %s" % (type(error).__name__, error)
        return found
    found["torch"] = torch.__version__
    found["cuda_build"] = torch.version.cuda
    found["hip_build"] = getattr(torch.version, "hip", None)
    try:
        found["kineto"] = bool(torch.profiler.kineto_available())
    except Exception:
        found["kineto"] = hasattr(torch, "profiler")
    if found["cuda_build"] or found["hip_build"]:
        _describe_devices(torch, found)
    return found


def _describe_devices(torch, found):
    try:
        import warnings

        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not count:
            found["cuda_error"] = str(warned[0].message).split(" (Triggered internally")[0] if warned else ""
        for index in range(count):
            properties = torch.cuda.get_device_properties(index)
            free, total = torch.cuda.mem_get_info(index)
            found["devices"].append(
                {"index": index, "name": properties.name, "free_bytes": free, "total_bytes": total}
            )  # fmt: skip
    except Exception as error:
        found["cuda_error"] = str(error)


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(describe()) + "\n")
