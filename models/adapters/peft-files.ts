export const PEFT_CONFIG = 'adapter_config.json';
export const PEFT_WEIGHTS = 'adapter_model.safetensors';
/** Files of an adapter as PEFT saves it, the configuration first. */
export const PEFT_FILES: readonly string[] = [PEFT_CONFIG, PEFT_WEIGHTS];
