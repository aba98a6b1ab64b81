import { execFileSync } from 'node:child_process';

/** The first GPU that TensorFlow may use, as the driver reports it. */
export interface Gpu {
  name: string;
  /** CUDA's number of the GPU's generation; 8.0: an A100; 9.0: an H100. */
  computeCapability: number;
  freeBytes: number;
}

const MIB = 2 ** 20;

/**
 * Asks nvidia-smi; null if it is missing or its output is not understood. tfjs-node itself reports no more of
 * a GPU than that it uses one.
 */
export function findGpu(
  environment: Readonly<Record<string, string | undefined>> = process.env,
  ask: (args: readonly string[]) => string = askDriver,
): Gpu | null {
  const device = environment.CUDA_VISIBLE_DEVICES?.split(',')[0]?.trim() ?? '0';
  const fields = '--query-gpu=name,compute_cap,memory.free';
  try {
    const [line = ''] = ask([fields, '--format=csv,noheader,nounits', `--id=${device}`]).split('\n');
    const [name, capability, free] = line.split(',').map((field) => field.trim());
    const gpu = { name: name ?? '', computeCapability: Number(capability), freeBytes: Number(free) * MIB };
    return gpu.computeCapability > 0 && gpu.freeBytes > 0 ? gpu : null;
  } catch {
    return null;
  }
}

function askDriver(args: readonly string[]): string {
  return execFileSync('nvidia-smi', args, {
    encoding: 'utf8',
    timeout: 5000,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}
