import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { withoutPartNumber } from '../../models/checkpoints/gguf-parts.js';
import { UsageError } from '../errors/user-errors.js';

/** A model of a hub. */
export interface Repository {
  /** Name of the repository, ORG/NAME. */
  id: string;
  /**
   * Precision of the wanted GGUF file, such as Q8_0; null: the repository's safetensors, else the most suitable GGUF
   * file.
   */
  quant: string | null;
}

const PATTERN = /^([A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*?)(?::([\w-]+))?$/;

/** The repository in a text of the form ORG/NAME[:QUANT]; null for any other text, such as a path with more slashes. */
export function parseRepository(text: string): Repository | null {
  const [, id, quant] = PATTERN.exec(text) ?? [];
  if (id === undefined || id.includes('..') || id.includes('--') || /\.(gguf|git)$/i.test(id)) return null;
  return { id, quant: quant ?? null };
}

/** The name of what is downloaded, ORG/NAME or ORG/NAME:QUANT, whatever the case of the precision. */
export function pulledName({ id, quant }: Repository): string {
  return quant === null ? id : `${id}:${quant.toUpperCase()}`;
}

/** Parses a text as parseRepository does. @throws UsageError where it names no repository. */
export function repositoryOf(text: string): Repository {
  const repository = parseRepository(text);
  if (repository !== null) return repository;
  throw new UsageError(
    `${JSON.stringify(text)} names no repository of models; ORG/NAME or ORG/NAME:QUANT is expected, such as HuggingFaceTB/SmolLM2-135M-Instruct.`,
  );
}

/** Name of a model that was given none: ORG/NAME for one of the hub, else the name of its folder or file. */
export function nameOf(model: string): string {
  const repository = parseRepository(model);
  if (repository !== null && !existsSync(model)) return repository.id;
  return withoutPartNumber(basename(resolve(model))).replace(/\.gguf$/i, '');
}
