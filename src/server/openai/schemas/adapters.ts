import * as z from 'zod';
import { about, component, notSupported, optional } from '../../../schemas/fields.js';
import { LONGEST_ADAPTER_NAME } from '../../../serving/adapters/adapter-name.js';

const name = (text: string) => about(z.string().min(1).max(LONGEST_ADAPTER_NAME), text);
const baseModel = optional(
  z.string(),
  'The model whose adapter it is, a name that GET /v1/models lists. Needed where several take adapters; where one does, an empty or unknown name means that one, as with vLLM.',
);

export const loadAdapterSchema = component(
  'LoadLoraAdapterRequest',
  z.strictObject({
    lora_name: name("The name of the adapter, to be given as 'model'."),
    lora_path: about(
      z.string().min(1).max(4096),
      'A folder of PEFT, or a GGUF file of llama.cpp, in the folder of --lora-dir.',
    ),
    load_inplace: optional(z.boolean(), {
      description: 'Takes the place of an adapter of this name. Its requests in flight go on as they began.',
      default: false,
    }),
    base_model_name: baseModel,
    is_3d_lora_weight: notSupported('adapters of experts whose weights have three dimensions', false),
  }),
  "A LoRA adapter to load, in vLLM's fields.",
);

export const unloadAdapterSchema = component(
  'UnloadLoraAdapterRequest',
  z.strictObject({
    lora_name: name('The name of the adapter.'),
    lora_int_id: optional(z.int(), "vLLM's number of the adapter; it is not read."),
  }),
  "A LoRA adapter to unload, in vLLM's fields.",
);
