import type { ModelConfig } from './model-config.js';
import { fieldError, type WrittenConfig } from './written-config.js';

/** What an instance runs in. */
export type InstanceKind = 'thread' | 'process';

/** Settings of `parameters` that are this server's own. */
export interface OwnParameters {
  /**
   * Milliseconds that an instance may take over a batch, after which it is ended and started again; 0: any
   * time.
   */
  executeTimeoutMs: number;
  /** Milliseconds that the instances may take to start, after which the load fails; 0: any time. */
  initializeTimeoutMs: number;
  instanceKind: InstanceKind;
  /** Bytes that the implicit states of the sequences of an instance may take together. */
  maxStateBytes: number;
}

const LONGEST_MS = 3_600_000;
/** Models that take longer to be read say so. */
const INITIALIZE_MS = 300_000;

const STATE_BYTES = 2 ** 30;
const MAX_STATE_BYTES = 2 ** 40;

/** What a backend's instances may run in. */
interface InstanceKinds {
  /** Where the configuration does not say. */
  instanceKind: InstanceKind;
  /** Why they have to be processes, as a sentence begins; absent: they may be threads. */
  onlyInProcess?: string;
}

/**
 * `execute_timeout_ms`, `initialize_timeout_ms`, `instance_kind` and `max_state_bytes` of a configuration's parameters.
 * @throws ModelConfigError
 */
export function ownParameters(
  { parameters }: ModelConfig,
  written: WrittenConfig,
  { instanceKind: usualKind, onlyInProcess }: InstanceKinds,
): OwnParameters {
  const text = (name: string) => parameters[name]?.string_value;
  const refuse = (name: string, expected: string) =>
    fieldError(written, ['parameters', name], `is ${JSON.stringify(text(name))}; ${expected} is expected.`);
  const milliseconds = (name: string, usual: number) => {
    const given = text(name) ?? String(usual);
    if (/^\d{1,7}$/.test(given) && Number(given) <= LONGEST_MS) return Number(given);
    throw refuse(name, `a whole number of milliseconds up to ${LONGEST_MS}`);
  };
  const executeTimeoutMs = milliseconds('execute_timeout_ms', 0);
  const initializeTimeoutMs = milliseconds('initialize_timeout_ms', INITIALIZE_MS);
  const instanceKind = text('instance_kind') ?? usualKind;
  if (onlyInProcess !== undefined && instanceKind !== 'process') {
    throw refuse('instance_kind', `${onlyInProcess}, so 'process'`);
  }
  if (instanceKind !== 'thread' && instanceKind !== 'process') {
    throw refuse('instance_kind', "'thread' or 'process'");
  }
  const bytes = text('max_state_bytes') ?? String(STATE_BYTES);
  if (!/^[1-9]\d{0,12}$/.test(bytes) || Number(bytes) > MAX_STATE_BYTES) {
    throw refuse('max_state_bytes', `a whole number of bytes from 1 to ${MAX_STATE_BYTES}`);
  }
  return { executeTimeoutMs, initializeTimeoutMs, instanceKind, maxStateBytes: Number(bytes) };
}
