/** What the server says of a question's prompt, in tokens. */
export interface PromptFigures {
  tokens?: number;
  cached?: number;
  /** Where it parts from an earlier prompt, and about how many of the rest are computed again. */
  parting?: { at: number; repeated: number };
}

/** What the header X-Skein-Prompt-Parted says; null: the prompt parts from none. */
export function partingOf(header: string | null): PromptFigures['parting'] | null {
  const [, at, repeated] = /^at=(\d+); tokens=\d+; repeated=(\d+)$/.exec(header ?? '') ?? [];
  return at === undefined ? null : { at: Number(at), repeated: Number(repeated) };
}

/** Sentences about a prompt; '': nothing is known of it. */
export function promptWords({ tokens, cached, parting }: PromptFigures): string {
  const number = (count: number) => count.toLocaleString('en');
  const sentences = [];
  if (tokens !== undefined)
    sentences.push(`Prompt of ${number(tokens)} tokens, ${number(cached ?? 0)} from the cache.`);
  if (parting !== undefined)
    sentences.push(
      `It differs from an earlier prompt after ${number(parting.at)} tokens: about ${number(parting.repeated)} are computed again.`,
    );
  return sentences.join(' ');
}
