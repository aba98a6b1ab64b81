import type { ModelConfig } from './model-config.js';
import { ModelConfigError } from './model-config-error.js';

/** Steps from a configuration to one of its values: `['input', 0, 'dims']`. */
export type FieldPath = readonly (string | number)[];

/** A configuration as its author wrote it, fields that were left out missing; names and types of all its fields are checked. */
export interface WrittenConfig {
  readonly fields: Partial<ModelConfig>;
  /** The file, or what else it came from, as a sentence has it. */
  readonly origin: string;
  /** The line of a field, from 1; null: not known. Of a field that was not written, that of the nearest around it. */
  lineOf(path: FieldPath): number | null;
}

/** `input[0].dims` */
export function pathText(path: FieldPath): string {
  return path
    .map((step, i) => (typeof step === 'number' ? `[${step}]` : i === 0 ? step : `.${step}`))
    .join('');
}

/** An error about a field: where it is, and the rest of the sentence, which begins with the field. */
export function fieldError(config: WrittenConfig, path: FieldPath, rest: string): ModelConfigError {
  return sentenceError(config, path, `${pathText(path)} ${rest}`);
}

/** An error about a field in a sentence of its own: where it is, and the sentence. */
export function sentenceError(config: WrittenConfig, path: FieldPath, sentence: string): ModelConfigError {
  const line = config.lineOf(path);
  const where = line === null ? config.origin : `${config.origin}:${line}`;
  return new ModelConfigError(`${where}: ${sentence}`);
}

/** The error, with its place where it is about a field of this configuration and does not say yet where that is. */
export function placed(config: WrittenConfig, error: unknown): unknown {
  const isOfField = error instanceof ModelConfigError && error.path !== null;
  return isOfField ? fieldError(config, error.path!, error.message) : error;
}
