/** Extensions of the protocol that this server has. */
const EXTENSIONS = [
  'classification',
  'model_repository',
  'model_repository(unload_dependents)',
  'schedule_policy',
  'model_configuration',
  'generate',
  'binary_tensor_data',
  'parameters',
  'statistics',
  'trace',
  'logging',
];

/** What a server tells of itself. @param hasSharedMemory clients on this machine have leave to use it */
export function extensions(hasSharedMemory: boolean): readonly string[] {
  return hasSharedMemory ? [...EXTENSIONS, 'system_shared_memory'] : EXTENSIONS;
}
