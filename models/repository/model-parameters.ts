import type { ModelConfig } from './model-config.js';
import { fieldError, type WrittenConfig } from './written-config.js';

/** What an instance runs in. */
export type InstanceKind = 'thread' | 'process';

/** Settings of `parameters` that are this server's own. */
export interface OwnParameters {
  /** Milliseconds that an instance may take over a batch, after which it is ended and started anew; 0: any time. */
  executeTimeoutMs: number;
  /** Milliseconds that the instances may take to start, after which the load fails; 0: any time. */
  initializeTimeoutMs: number;
  instanceKind: InstanceKind;
}

const LONGEST_MS = 3_600_000;
/** Models that take longer to be read say so. */
const INITIALIZE_MS = 300_000;

/**
 * `execute_timeout_ms`, `initialize_timeout_ms` and `instance_kind` of a configuration's parameters.
 * @param usualKind what instances run in where it does not say @throws ModelConfigError
 */
export function ownParameters(
  { parameters }: ModelConfig,
  written: WrittenConfig,
  usualKind: InstanceKind,
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
  if (instanceKind !== 'thread' && instanceKind !== 'process') {
    throw refuse('instance_kind', "'thread' or 'process'");
  }
  return { executeTimeoutMs, initializeTimeoutMs, instanceKind };
}
