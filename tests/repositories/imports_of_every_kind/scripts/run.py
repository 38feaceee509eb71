from kit.inner import deep
import helper
