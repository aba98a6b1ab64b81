import type { Machine } from '../../base/machine.js';

/**
 * Name of a document's section for machines of this kind, so that figures of AVX2 and of AVX-512 stand side by side.
 */
export function sectionOf(name: string, { features }: Machine): string {
  return `${name}-${features.includes('avx512f') ? 'avx512' : 'avx2'}`;
}

/** Describes a machine in a line. */
export function machineLine({ cpu, cores, memoryGiB, features }: Machine): string {
  return `${cpu}, ${cores} cores, ${memoryGiB} GiB, ${features.join(' ')}`;
}
