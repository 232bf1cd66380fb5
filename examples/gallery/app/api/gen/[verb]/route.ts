export { proxy as GET, proxy as HEAD, proxy as POST } from '../../../../lib/gen';
