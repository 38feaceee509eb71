import layered
import beta.part
