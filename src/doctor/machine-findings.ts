import { totalmem } from 'node:os';
import { gigabytes } from '../../base/address-space.js';
import { messageOf } from '../../base/error-text.js';
import { describeMachine, type Machine } from '../../base/machine.js';
import { defaultThreads, fewerThreads } from '../../base/topology.js';
import type { InstructionSet } from '../../callbacks/gpt-manager-options.js';
import { chooseInstructionSet } from '../../engine/executors/native/instruction-set.js';
import { loadAddon, nativeAddonAvailable } from '../../engine/executors/native/load-addon.js';
import { type AvailableMemory, availableMemory } from '../../kvcache/available-memory.js';
import { type Finding, note, ok, wrong } from './finding.js';
import { readingRate } from './reading-rate.js';

/** Where the findings have their facts from; tests bring their own. */
export interface MachineFacts {
  machine: Machine;
  threads: number;
  /** Why there are fewer threads than processors; null: there are as many, or nothing is known. */
  fewer: string | null;
  memory: AvailableMemory;
  totalBytes: number;
  /** Instruction sets that the addon runs here, from the slowest to the fastest. @throws where there is no addon */
  instructionSets(): readonly InstructionSet[];
  /** Value of SKEIN_ISA. */
  isa: string | undefined;
}

export function machineFacts(): MachineFacts {
  const threads = defaultThreads();
  return {
    machine: describeMachine(),
    threads,
    fewer: fewerThreads(threads),
    memory: availableMemory(),
    totalBytes: totalmem(),
    instructionSets: () => loadAddon().supportedInstructionSets(),
    isa: process.env.SKEIN_ISA || undefined,
  };
}

export function machineFindings(facts: MachineFacts): Finding[] {
  const { machine, threads, fewer, memory, totalBytes } = facts;
  const features = machine.features.length === 0 ? '' : ` (${machine.features.join(' ')})`;
  const from = ` of ${gib(totalBytes)} can be used: ${memory.from}`;
  return [
    ok('processor', `${machine.cpu}, ${machine.cores} processors${features}`),
    kernelsFinding(facts),
    ok('threads', `${threads} compute by default${fewer === null ? '' : `: ${fewer}`}`),
    memory.bytes < 2 ** 30
      ? note(
          'memory',
          `${gib(memory.bytes)}${from}`,
          'stop other programs, or raise the limit of the container',
        )
      : ok('memory', `${gib(memory.bytes)}${from}`),
  ];
}

/** Binary, as memory is sold. */
const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB`;

function kernelsFinding({ instructionSets, isa }: MachineFacts): Finding {
  let sets: readonly InstructionSet[];
  try {
    sets = instructionSets();
  } catch (error) {
    const slow = `WebAssembly computes, several times slower: ${messageOf(error)}`;
    return note('kernels', slow, 'a compiler and "npm rebuild skein" make the native addon');
  }
  const best = chooseInstructionSet(sets, undefined, undefined);
  if (isa === undefined || isa === best) return ok('kernels', `native, with ${best}`);
  if (sets.some((set) => set === isa))
    return note('kernels', `native, with ${isa}, which SKEIN_ISA names`, `without it they take ${best}`);
  return wrong(
    'kernels',
    `SKEIN_ISA names ${isa}, which this processor does not run`,
    `it runs ${sets.join(', ')}`,
  );
}

/** The instruction set whose kernels run; "wasm" where the addon does not load. @throws Error where SKEIN_ISA names another */
export function chosenKernels(): string {
  return nativeAddonAvailable()
    ? chooseInstructionSet(loadAddon().supportedInstructionSets(), undefined, process.env.SKEIN_ISA)
    : 'wasm';
}

/**
 * What memory gives to the threads that compute. A sequence that generates reads all weights for each token, so that this is the most
 * that one sequence can have.
 */
export async function readingFinding(threads: number, rate = readingRate): Promise<Finding> {
  const bytesPerSecond = await rate(threads);
  const tokens = Math.floor(bytesPerSecond / 1e9);
  const limit = `one sequence generates at most ${tokens} tokens/s for each GB of weights`;
  return ok('reading', `${gigabytes(bytesPerSecond)}/s from memory with ${threads} threads: ${limit}`);
}
