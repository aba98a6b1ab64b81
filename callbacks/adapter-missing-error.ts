import { input, says } from '../base/named-text.js';
import { SkeinError } from '../base/skein-error.js';

/** A request names an adapter whose weights the engine does not hold, or no longer: they have to be sent (again). */
export class AdapterMissingError extends SkeinError {
  override name = 'AdapterMissingError';
  override readonly code = 'SKEIN_ADAPTER_MISSING';
  readonly taskId: bigint;

  constructor(taskId: bigint) {
    super(
      says`${input('lora_task_id')} is ${taskId}, and the cache of adapters does not hold that one, or no longer; send ${input('lora_weights')} and ${input('lora_config')} with the request (again).`,
    );
    this.taskId = taskId;
  }
}
