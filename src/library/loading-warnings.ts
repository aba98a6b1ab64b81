const warned = new Set<string>();

/** Warns a program once where its model runs on a slower executor than this machine could use. */
export function warnOfFallback({ executorFallback }: { executorFallback: string | null }): void {
  if (executorFallback !== null) warnOnce(executorFallback, 'SKEIN_EXECUTOR_FALLBACK');
}

/** Warns a program once where the KV cache is shorter than the model's context. */
export function warnOfContext({ loweredContext }: { loweredContext: string | null }): void {
  if (loweredContext !== null) warnOnce(loweredContext, 'SKEIN_CONTEXT_LOWERED');
}

/** Warns a program once of recommendations of a model that are left out. */
export function warnOfLeftOut({ samplingLeftOut }: { samplingLeftOut: readonly string[] }): void {
  for (const sentence of samplingLeftOut) warnOnce(sentence, 'SKEIN_GENERATION_CONFIG');
}

/** Warns a program once of what is computed differently from what a model's files say. */
export function warnOfRemarks({ remarks }: { remarks: readonly string[] }): void {
  for (const sentence of remarks) warnOnce(sentence, 'SKEIN_MODEL_REMARK');
}

function warnOnce(sentence: string, code: string): void {
  if (warned.has(sentence)) return;
  warned.add(sentence);
  process.emitWarning(sentence, { type: 'SkeinWarning', code });
}
