import { UsageError } from '../usage-error.js';

/** A model of a hub. */
export interface Repository {
  /** ORG/NAME. */
  id: string;
  /** Which of its GGUF files, such as Q8_0; null: its safetensors, else the file that suits best. */
  quant: string | null;
}

const PATTERN = /^([A-Za-z0-9][\w.-]*\/[A-Za-z0-9][\w.-]*?)(?::([\w-]+))?$/;

/** What a text of the form ORG/NAME[:QUANT] names; null where it has another form, such as that of a path with more slashes. */
export function parseRepository(text: string): Repository | null {
  const [, id, quant] = PATTERN.exec(text) ?? [];
  if (id === undefined || id.includes('..') || id.includes('--') || /\.(gguf|git)$/i.test(id)) return null;
  return { id, quant: quant ?? null };
}

/** @throws UsageError where the text is none. */
export function repositoryOf(text: string): Repository {
  const repository = parseRepository(text);
  if (repository !== null) return repository;
  throw new UsageError(
    `${JSON.stringify(text)} names no repository of models; ORG/NAME or ORG/NAME:QUANT is expected, such as HuggingFaceTB/SmolLM2-135M-Instruct.`,
  );
}
