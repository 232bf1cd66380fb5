export { characterParams, imageParams, videoEditParams, videoParams } from './params.js';
