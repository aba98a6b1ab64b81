/** What this server tells of tracing: it has none, in the form that clients of Triton read. */
export const TRACE_SETTINGS = {
  trace_level: ['OFF'],
  trace_rate: '1000',
  trace_count: '-1',
  log_frequency: '0',
  trace_file: '',
  trace_mode: 'triton',
};

/** What this server tells of its log, in the form that clients of Triton read: --log-level decides. */
export const LOG_SETTINGS = {
  log_file: '',
  log_info: true,
  log_warning: true,
  log_error: true,
  log_verbose_level: 0,
  log_format: 'default',
};

/** Extensions of the protocol that this server has. */
export const EXTENSIONS = [
  'classification',
  'model_repository',
  'model_repository(unload_dependents)',
  'schedule_policy',
  'model_configuration',
  'binary_tensor_data',
  'parameters',
  'statistics',
  'trace',
  'logging',
];
