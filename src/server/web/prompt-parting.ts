import type { Context } from 'hono';
import type { AppEnv } from './app-env.js';

/** Where a prompt stopped being an earlier one although most of what follows is the same. Numbers are of tokens. */
export interface PromptParting {
  /** That it has in common with the beginning of an earlier prompt, which are all that a cache of prefixes can have of it. */
  at: number;
  promptTokens: number;
  /** About how many of the rest stand in one earlier prompt too, and are computed again. */
  repeated: number;
}

const PARTING_HEADER = 'x-skein-prompt-parted';

/** Sends with an answer where its prompt parted from an earlier one. */
export async function tellParting(c: Context<AppEnv>, next: () => Promise<void>): Promise<void> {
  await next();
  const parting = c.get('parting');
  if (parting === undefined) return;
  const { at, promptTokens, repeated } = parting;
  c.res.headers.set(PARTING_HEADER, `at=${at}; tokens=${promptTokens}; repeated=${repeated}`);
}
