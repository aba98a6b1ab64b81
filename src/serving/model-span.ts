import type { TraceSpan } from '../../callbacks/infer/trace-span.js';
import type { ModelConfig } from '../../models/repository/model-config.js';

/** The span of a request at a model, below the caller's; null: it is not traced. */
export function modelSpan(
  parent: TraceSpan | undefined,
  { name, backend }: Pick<ModelConfig, 'name' | 'backend'>,
  version: string,
  id: string,
  startMs: number,
): TraceSpan | null {
  if (parent === undefined) return null;
  return parent.child(`infer ${name}`, startMs, {
    'triton.model_name': name,
    'triton.model_version': version,
    ...(id === '' ? {} : { 'triton.request_id': id }),
    'skein.backend': backend,
  });
}

/** Ends the span of a request at a model. @param error null: it was answered */
export function endModelSpan(span: TraceSpan | null, error: Error | null): void {
  if (span === null) return;
  if (error !== null) span.fail(error.message);
  span.end();
}
