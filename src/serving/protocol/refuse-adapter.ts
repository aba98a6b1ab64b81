import type { InferRequest } from '../../../callbacks/infer/infer-types.js';
import type { InferModel } from '../infer-model.js';
import { malformed } from './malformed.js';

/** A client that names an adapter wants other answers than it would get. @throws InferError where nobody would read the name */
export function refuseAdapter(
  { config, ignoresParameters }: Pick<InferModel, 'config' | 'ignoresParameters'>,
  { parameters }: Pick<InferRequest, 'parameters'>,
): void {
  if (ignoresParameters !== true || !Object.hasOwn(parameters, 'lora_name')) return;
  throw malformed(
    `parameter 'lora_name' is for models that generate text; '${config.name}' takes no LoRA adapters`,
  );
}
