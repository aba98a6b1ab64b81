const warned = new Set<string>();

/** Tells a program that embeds a model, once, that it computes with less than it could. */
export function warnOfFallback({ executorFallback }: { executorFallback: string | null }): void {
  if (executorFallback === null || warned.has(executorFallback)) return;
  warned.add(executorFallback);
  process.emitWarning(executorFallback, { type: 'SkeinWarning', code: 'SKEIN_EXECUTOR_FALLBACK' });
}
