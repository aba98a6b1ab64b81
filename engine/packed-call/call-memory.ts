import type { MemoryRegion } from '../../base/columns.js';
import { PACKED_TABLE } from '../batch/packed-batch.js';
import { OUTPUT_TABLE, SAMPLING_TABLE } from '../decoding/sampling-batch.js';
import { type CallPlace, HEADER_LENGTH } from './call-header.js';
import { type CallLimits, outputCounts, packedCounts, samplingCounts } from './call-limits.js';

/** Parts begin at a cache line of their own, so that who writes the one does not slow down who writes the next. */
const LINE_BYTES = 64;

/**
 * One call of the executor in one piece of memory: what is packed, how it is drawn, and what comes back. Whoever knows
 * the limits and has the memory, another thread or process too, finds everything in it at the same place.
 *
 *   header | tokenIds positions ... ropeRows | seed temperature ... | tokens topStart ...
 *   counts | batch                           | sampling             | output
 *
 * What is rare and of no fixed size is not in it: tables of prompts, biases, masks, drafts' logits and returned rows. The
 * columns that grow (banned tokens, histories, most probable tokens) are in it as long as they have room there; then they are
 * arrays of their own. Angles are one table for all calls (RopeTable), and not in it either.
 */
export class CallMemory {
  readonly limits: CallLimits;
  /** The counts of the call, see CALL_HEADER. */
  readonly header: Int32Array;
  readonly batch: CallPlace;
  readonly sampling: CallPlace;
  readonly output: MemoryRegion;

  /** Bytes of a call within these limits. */
  static sizeOf(limits: CallLimits): number {
    return layoutOf(limits).bytes;
  }

  /** Throws a RangeError where the memory is too small. It is not written to. */
  constructor(buffer: ArrayBufferLike, limits: CallLimits) {
    const { batch, sampling, output, bytes } = layoutOf(limits);
    if (buffer.byteLength < bytes) {
      throw new RangeError(
        `The memory of a packed call has ${buffer.byteLength} bytes, but ${bytes} are needed for ${limits.tokens} tokens of ` +
          `${limits.sequences} sequences.`,
      );
    }
    this.limits = limits;
    this.header = new Int32Array(buffer, 0, HEADER_LENGTH);
    this.batch = { header: this.header, region: { buffer, byteOffset: batch } };
    this.sampling = { header: this.header, region: { buffer, byteOffset: sampling } };
    this.output = { buffer, byteOffset: output };
  }
}

/** Where each part begins, and where the last one ends. */
function layoutOf(limits: CallLimits) {
  const { logitRows, history } = limits;
  const batch = wholeLines(HEADER_LENGTH * Int32Array.BYTES_PER_ELEMENT);
  const sampling = wholeLines(batch + PACKED_TABLE.byteLength(packedCounts(limits)));
  const output = wholeLines(sampling + SAMPLING_TABLE.byteLength(samplingCounts(logitRows, history)));
  return { batch, sampling, output, bytes: output + OUTPUT_TABLE.byteLength(outputCounts(logitRows)) };
}

function wholeLines(bytes: number): number {
  return Math.ceil(bytes / LINE_BYTES) * LINE_BYTES;
}
