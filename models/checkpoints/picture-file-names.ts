/** Files that say how a model's pictures are prepared: its image processor's, and its processor's, which may have that one's within it. */
export const PICTURE_FILES = ['preprocessor_config.json', 'processor_config.json'] as const;
