import { messageOf } from '../base/error-text.js';
import { MAX_INT32 } from '../base/int32.js';
import { input, says } from '../base/named-text.js';
import { checkRetention, type Retention, type RetentionPriority } from '../kvcache/retention.js';
import { checkRange, ParameterError } from './sampling-params.js';
import type { Tensor } from './types.js';

/**
 * Reads how long the request's cached blocks are worth keeping; null where the request does not say.
 *
 *   retention_ranges  [1, n, 4]  a row per range of the prompt: start, end (-1: the prompt's end), priority 0..100,
 *                                milliseconds until the default priority holds again (0: never)
 *   decode_retention  [1, 2]     priority and milliseconds of blocks that begin with a generated token
 *
 * A block goes by its first token and the first range that holds it.
 */
export function readRetention(inputs: Record<string, Tensor>): Retention | null {
  const { retention_ranges: ranges, decode_retention: decode } = inputs;
  if (!ranges && !decode) return null;
  return {
    ...(ranges ? checked('retention_ranges', { ranges: rangesOf(ranges.data as Int32Array) }) : {}),
    ...(decode
      ? checked('decode_retention', {
          generated: priorityOf('decode_retention', decode.data as Int32Array, 0),
        })
      : {}),
  };
}

function checked(field: string, retention: Retention): Retention {
  try {
    checkRetention(retention);
  } catch (error) {
    throw new ParameterError(field, says`${input(field)}: ${messageOf(error)}`);
  }
  return retention;
}

const INT32 = { min: 0, max: MAX_INT32, integer: true };

/** Refuses values that the tensors could not carry unchanged. @throws ParameterError */
export function checkRetentionValues(retention: Retention): void {
  const { ranges, generated } = checked('retention', retention);
  for (const { start, end = start, priority, durationMs = 1 } of [
    ...(ranges ?? []),
    ...(generated ? [{ start: 0, ...generated }] : []),
  ]) {
    for (const value of [start, end, priority, durationMs]) checkRange('retention', value, INT32);
  }
}

/** Makes the tensors that readRetention reads, of checked values. */
export function retentionInputs({ ranges, generated }: Retention): Record<string, Tensor> {
  const inputs: Record<string, Tensor> = {};
  if (ranges && ranges.length > 0) {
    const rows = ranges.flatMap(({ start, end = -1, priority, durationMs = 0 }) => [
      start,
      end,
      priority,
      durationMs,
    ]);
    inputs.retention_ranges = { shape: [1, ranges.length, 4], data: Int32Array.from(rows) };
  }
  if (generated) {
    const { priority, durationMs = 0 } = generated;
    inputs.decode_retention = { shape: [1, 2], data: Int32Array.of(priority, durationMs) };
  }
  return inputs;
}

function rangesOf(rows: Int32Array): NonNullable<Retention['ranges']> {
  return Array.from({ length: rows.length / 4 }, (_, i) => {
    const [start, end] = [rows[4 * i]!, rows[4 * i + 1]!];
    const kept = priorityOf('retention_ranges', rows, 4 * i + 2);
    return { start, ...(end === -1 ? {} : { end }), ...kept };
  });
}

function priorityOf(field: string, values: Int32Array, at: number): RetentionPriority {
  const [priority, durationMs] = [values[at]!, values[at + 1]!];
  if (durationMs < 0) {
    throw new ParameterError(
      field,
      says`${input(field)} has the duration ${durationMs} ms; at least 0 is expected (0: for ever).`,
    );
  }
  return { priority, ...(durationMs === 0 ? {} : { durationMs }) };
}
