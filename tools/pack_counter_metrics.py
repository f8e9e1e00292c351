#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes data/counters/cupti.txt: which CUPTI metric stands for each word of src/base/activity.h on
each chip, in passes that PM sampling takes at once. Needs libcupti (12.6 or newer) but no GPU.

usage: tools/pack_counter_metrics.py [--check FILE] [LIBCUPTI] > data/counters/cupti.txt

--check FILE: instead, exits 1 unless every pass of FILE is one pass for its chip, 77 where there is
no LIBCUPTI.
"""
import ctypes
import sys

CHIPS = ["TU102", "TU104", "TU106", "TU116", "TU117", "GA100", "GA102", "GA103", "GA104", "GA106",
         "GA107", "AD102", "AD103", "AD104", "AD106", "AD107", "GH100", "GB100", "GB102", "GB202",
         "GB203", "GB205", "GB206", "GB207"]
SHARE = ".avg.pct_of_peak_sustained_elapsed"
RATE = ".sum.per_second"
# Word -> metrics that can stand for it, best first; the first that fits one pass alone is taken.
# Words in one group may share a pass. More than two words on the SMs' own counters in one pass gave
# values up to 3 points off on an H200 (docs/counters.md), so SM words come in pairs.
GROUPS = [
    [("gr_active", ["gr__cycles_active" + SHARE]),
     ("sm_active", ["sm__cycles_active" + SHARE]),
     ("dram_active", ["dram__throughput" + SHARE, "dramc__throughput" + SHARE]),
     ("pcie_tx_bytes_per_s", ["pcie__write_bytes" + RATE]),
     ("pcie_rx_bytes_per_s", ["pcie__read_bytes" + RATE])],
    [("tensor_active", ["sm__pipe_tensor_cycles_active" + SHARE,
                        "sm__pipe_tensor_cycles_active_realtime" + SHARE])],
    [("sm_occupancy", ["sm__warps_active" + SHARE]),
     ("fp32_active", ["sm__pipe_fma_cycles_active" + SHARE])],
    [("fp64_active", ["sm__pipe_fp64_cycles_active" + SHARE,
                      "TPC.TriageCompute.sm__pipe_fp64_cycles_active_realtime" + SHARE]),
     ("fp16_active", ["sm__inst_executed_pipe_fma_type_fp16" + SHARE,
                      "sm__inst_executed_pipe_fp16" + SHARE])],
    [("issue_active", ["sm__inst_executed" + SHARE]),
     ("instructions_per_s", ["sm__inst_executed" + RATE])],
    [("l2_sectors_per_s", ["lts__t_sectors" + RATE]),
     ("l2_hit_rate", ["lts__t_sector_hit_rate.pct"])],
    [("l1_sectors_per_s", ["l1tex__t_sectors" + RATE]),
     ("l1_hit_rate", ["l1tex__t_sector_hit_rate.pct"])],
    [("pipe_alu", ["sm__pipe_alu_cycles_active" + SHARE]),
     ("pipe_lsu", ["sm__inst_executed_pipe_lsu" + SHARE]),
     ("pipe_xu", ["sm__inst_executed_pipe_xu" + SHARE]),
     ("pipe_tex", ["sm__inst_executed_pipe_tex" + SHARE])],
]
PLACES = ["libcupti.so.13", "/usr/local/cuda/lib64/libcupti.so.13",
          "/usr/local/cuda/lib/libcupti.so.13",
          "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"]
MOST_PASSES = 8


class Fields:
    """One parameter block: size, null, then 8-byte fields (or a 4-byte one, padded)."""

    def __init__(self, count):
        self.words = (ctypes.c_uint64 * (2 + count))()
        self.words[0] = 8 * (2 + count)

    def __getitem__(self, i):
        return self.words[2 + i]

    def __setitem__(self, i, value):
        self.words[2 + i] = value


class Cupti:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def call(self, name, block):
        return getattr(self.library, name)(ctypes.byref(block.words))

    def passes(self, chip, metrics):
        """How many passes they take together; None where one is not known."""
        block = Fields(4)  # kind, chip, availability, host
        name = ctypes.create_string_buffer(chip.encode())
        block[0] = 1  # PM sampling
        block[1] = ctypes.addressof(name)
        if self.call("cuptiProfilerHostInitialize", block) != 0:
            return None
        host = block[3]
        texts = [ctypes.create_string_buffer(m.encode()) for m in metrics]
        names = (ctypes.c_uint64 * len(texts))(*[ctypes.addressof(t) for t in texts])
        block = Fields(3)
        block[0], block[1], block[2] = host, ctypes.addressof(names), len(texts)
        result = None
        if self.call("cuptiProfilerHostConfigAddMetrics", block) == 0:
            size = Fields(2)
            size[0] = host
            self.call("cuptiProfilerHostGetConfigImageSize", size)
            image = ctypes.create_string_buffer(size[1])
            block = Fields(3)
            block[0], block[1], block[2] = host, size[1], ctypes.addressof(image)
            self.call("cuptiProfilerHostGetConfigImage", block)
            count = Fields(3)
            count[0], count[1] = size[1], ctypes.addressof(image)
            if self.call("cuptiProfilerHostGetNumOfPasses", count) == 0:
                result = count[2]
        block = Fields(1)
        block[0] = host
        self.call("cuptiProfilerHostDeinitialize", block)
        return result


def pack(cupti, chip):
    passes = []
    for group in GROUPS:
        open_pass = []
        for word, candidates in group:
            metric = next((m for m in candidates if cupti.passes(chip, [m]) == 1), None)
            if metric is None:
                continue
            if open_pass and cupti.passes(chip, [m for _, m in open_pass] + [metric]) != 1:
                passes.append(open_pass)
                open_pass = []
            open_pass.append((word, metric))
        if open_pass:
            passes.append(open_pass)
    return passes[:MOST_PASSES]


def read(path):
    chips, chip = {}, None
    for line in open(path):
        fields = line.split("#")[0].split()
        if not fields:
            continue
        if fields[0] == "chip":
            chip = chips.setdefault(fields[1], [])
        elif fields[0] == "pass":
            chip.append([])
        else:
            chip[-1].append(tuple(fields))
    return chips


def find_cupti(places):
    for place in places:
        try:
            return Cupti(place)
        except OSError:
            pass
    return None


def main():
    arguments = sys.argv[1:]
    check = None
    if arguments[:1] == ["--check"]:
        check = arguments[1]
        arguments = arguments[2:]
    cupti = find_cupti(arguments or PLACES)
    if cupti is None:
        print("no CUPTI in " + ", ".join(arguments or PLACES))
        return 77
    if check:
        bad = 0
        for chip, passes in read(check).items():
            for metrics in passes:
                n = cupti.passes(chip, [m for _, m in metrics])
                if n != 1:
                    print(f"{chip}: {metrics} takes {n} passes")
                    bad = 1
        print(f"{check}: " + ("bad" if bad else "every pass is one"))
        return bad
    print("# Made by tools/pack_counter_metrics.py; do not edit. Format: docs/counters.md.")
    for chip in CHIPS:
        passes = pack(cupti, chip)
        if not passes:
            continue
        print(f"chip {chip}")
        for metrics in passes:
            print("pass")
            for word, metric in metrics:
                print(f"{word} {metric}")
    return 0


sys.exit(main())
