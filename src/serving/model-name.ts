import { existsSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { withoutPartNumber } from '../../models/checkpoints/gguf-parts.js';
import { parseRepository } from '../hub/repository.js';

/** Name of a model that was given none: ORG/NAME for one of the hub, else the name of its folder or file. */
export function nameOf(model: string): string {
  const repository = parseRepository(model);
  if (repository !== null && !existsSync(model)) return repository.id;
  return withoutPartNumber(basename(resolve(model))).replace(/\.gguf$/i, '');
}
