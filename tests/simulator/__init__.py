"""A small simulator of a training loop: one or several CPU threads that queue work for devices, and wait for it.

It knows nothing of the replay that it is used to check. A program is a function that is called once per step with a
`Machine` and the step's number; each call on the machine moves the clocks on. A *fix* is the same program without
the fault: give the fault a name and ask ``m.fixed(name)``.

Example
-------
::

    from tests.simulator import Machine, simulate

    def step(m: Machine, number: int) -> None:
        m.loader(us=300, workers=4)                               # DataLoader.__next__
        with m.frame("train.py", 20, "train_step"):
            m.to_device(nbytes=1 << 20, us=200)                   # pageable: blocks, as .to("cuda") does
            with m.range("forward"):
                for _ in range(10):
                    m.kernel_op("aten::mm", us=400, kernel="ampere_sgemm_128x64_tn")
            if not m.fixed("item"):
                with m.frame("train.py", 9, "log"):
                    m.item()                                      # aten::item > _local_scalar_dense > DtoH
            with m.thread("backward"):                            # the caller waits meanwhile
                for _ in range(10):
                    m.kernel_op("aten::mm", us=800)

    run = simulate(step, steps=5)                # what the profiler would record: 5 steps after a warm-up
    run.sustained_step_us                        # the true pace of the loop, from many unrecorded steps
    run.host_step_us                             # per recorded step: ProfilerStep's duration
    run.syncs                                    # every blocking call with its true wait
    run.write(tmp_path / "trace.json")           # Kineto JSON (top level key "steplens_simulated": true)

    saved_us = run.sustained_step_us - simulate(step, fixes={"item"}).sustained_step_us

All arguments are microseconds (``us``) and bytes; host costs are per call. Blocking follows CUDA's page on API
synchronisation: a pageable host-to-device copy first drains its stream, a copy to pageable memory returns when it is
complete, and newer read-backs go through pinned memory and wait in ``cudaStreamSynchronize``.
"""

from tests.simulator.clock import Costs
from tests.simulator.machine import Event, Machine
from tests.simulator.run import Run, SyncTruth, simulate

__all__ = ["Costs", "Event", "Machine", "Run", "SyncTruth", "simulate"]
