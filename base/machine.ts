import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';

export interface Machine {
  cpu: string;
  cores: number;
  memoryGiB: number;
  /** Vector extensions of the processor, which decide the kernels that run. */
  features: string[];
}

const FEATURES = [
  'avx2',
  'fma',
  'f16c',
  'avx512f',
  'avx512bw',
  'avx512_vnni',
  'avx512_bf16',
  'avx_vnni',
  'amx_bf16',
  'amx_int8',
];

export function describeMachine(): Machine {
  const flags = new Set(/^flags\s*: (.*)$/m.exec(readCpuInfo())?.[1]?.split(' ') ?? []);
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    features: FEATURES.filter((name) => flags.has(name)),
  };
}

function readCpuInfo(): string {
  try {
    return readFileSync('/proc/cpuinfo', 'utf8');
  } catch {
    return '';
  }
}
